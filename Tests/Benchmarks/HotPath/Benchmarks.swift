import Benchmark
import FanfareCore
import HTTP2
import PushServices
import RDKafka
import Worker

/// What a send costs at each stage of its way, a thousand times per iteration. Allocations are gated (see
/// `deploy/benchmarks`), because they come out the same on every machine; times are reported only.
func benchmarks() {
  let configuration = Benchmark.Configuration(
    metrics: [.allocations, .processorTime], warmupIterations: 3, scalingFactor: .kilo, maxDuration: .seconds(2),
    maxIterations: 500, thresholds: [.allocations: BenchmarkThresholds(relative: [.p90: 2])])

  Benchmark("DecodeSend", configuration: configuration) { benchmark in
    let record = Specimen.send().encoded()
    try benchmark.measure {
      for _ in benchmark.scaledIterations { blackHole(try SendRequest.decode(record[...], recordTime: Specimen.now)) }
    }
  }

  Benchmark("EncodeStatus", configuration: configuration) { benchmark in
    let status = Specimen.status()
    benchmark.measure {
      for _ in benchmark.scaledIterations { blackHole(status.encoded()) }
    }
  }

  Benchmark("BuildAPNs", configuration: configuration) { benchmark in
    let send = Specimen.send()
    let fields = try Specimen.apnsFields()
    try benchmark.measure {
      var writer = APNsRequestWriter(fields: fields, now: Specimen.now, timeout: .seconds(20))
      for _ in benchmark.scaledIterations {
        blackHole(writer.request(for: Specimen.push(try APNsRenderer.render(send), to: Specimen.token)))
      }
    }
  }

  Benchmark("BuildFCM", configuration: configuration) { benchmark in
    let send = Specimen.send()
    let shared = HTTP2Headers(path: "/v1/projects/demo/messages:send", Specimen.sharedFields)
    let writer = FCMRequestWriter(shared: shared, now: Specimen.now, timeout: .seconds(20))
    try benchmark.measure {
      for _ in benchmark.scaledIterations {
        blackHole(writer.request(for: Specimen.push(try FCMRenderer.render(send), to: Specimen.token), ticket: 1))
      }
    }
  }

  Benchmark("BuildWNS", configuration: configuration) { benchmark in
    let send = Specimen.send()
    let handle = "https://db5.notify.windows.com/?token=AwYAAACmfiS0Kxh9B0VQNW%2bZHzDyJ"
    guard let channel = ChannelURI(handle) else { return benchmark.error("the channel is refused") }
    let writer = WNSRequestWriter()
    try benchmark.measure {
      for _ in benchmark.scaledIterations {
        let push = Specimen.push(try WNSRenderer.render(send), to: handle)
        blackHole(writer.request(for: push, channel: channel, token: Specimen.token, now: Specimen.now))
      }
    }
  }

  Benchmark("SettleOffset", configuration: configuration) { benchmark in
    var ledger = PartitionOffsets()
    ledger.assign(Specimen.partition)
    let records = benchmark.scaledIterations.map { Specimen.record(at: Int64($0), value: []) }
    benchmark.measure {
      for record in records {
        guard let origin = ledger.begin(record) else { return benchmark.error("the record is refused") }
        ledger.settle(origin)
      }
      blackHole(ledger.takeChanged(metadataLimit: 3_500))
    }
  }

  Benchmark("ExchangeHTTP2", configuration: configuration) { benchmark, exchange in
    let requests = exchange.requests(benchmark.scaledIterations.count)
    await benchmark.measure { await exchange.run(requests) }
  } setup: {
    try await Exchange()
  }

  Benchmark("DispatchSend", configuration: configuration) { benchmark, bench in
    let records = bench.records(benchmark.scaledIterations.count)
    await benchmark.measure { await bench.run(records) }
  } setup: {
    try await WorkerBench()
  }
}
