// Tests of LedgerTests.
