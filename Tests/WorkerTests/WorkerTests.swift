// Tests of WorkerTests.
