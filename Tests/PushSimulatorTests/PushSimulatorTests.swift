// Tests of PushSimulatorTests.
