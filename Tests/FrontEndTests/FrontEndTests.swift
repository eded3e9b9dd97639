// Tests of FrontEndTests.
