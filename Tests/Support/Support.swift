// Tests of Support.
