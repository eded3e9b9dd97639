// Tests of OperationsTests.
