// Tests of PushServicesTests.
