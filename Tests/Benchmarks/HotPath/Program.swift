import Benchmark

/// What `BenchmarkPlugin` would generate: written out, because the plugin would have a tool of its own built in every
/// build.
@main
struct Program: BenchmarkRunnerHooks {
  static func registerBenchmarks() { benchmarks() }
}
