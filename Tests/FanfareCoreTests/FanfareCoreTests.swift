// Tests of FanfareCoreTests.
