// Tests of FanfareTests.
