// Tests of RegistryTests.
