import FanfareCore
import Registry

/// A send to very many devices.
struct BroadcastScenario: BenchScenario {
  let name: String
  private let devices: Int
  private let audience: Audience
  private let goals: [ScenarioReport.Goal]
  private var isInDatabase = false
  private var isFromTemplate = false

  /// A send to a tag of very many devices.
  static let tag = Self(
    name: "tag", devices: 100_000, audience: .tag("news"),
    goals: [.share(0.65), .cpu(10), .multiple(2.5), .memory(150)])
  /// A send to everyone.
  static let broadcast = Self(
    name: "broadcast", devices: 1_000_000, audience: .everyone, goals: [.share(0.5), .memory(200)])
  /// A send to everyone, with registrations in PostgreSQL.
  static let databaseBroadcast = Self(
    name: "broadcast, PostgreSQL", devices: 1_000_000, audience: .everyone, goals: [.share(0.5), .memory(200)],
    isInDatabase: true
  )

  /// A send to everyone from a template in five languages; its ceiling is a broadcast of a native payload.
  static let templateBroadcast = Self(
    name: "broadcast, template", devices: 100_000, audience: .everyone, goals: [.multiple(1.5)], isFromTemplate: true)

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let devices = rig.options.scaled(devices)
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    if isInDatabase { return try await inDatabase(bench, devices, sink: sink) }
    let warmUp = min(devices, 20_000)
    let file = rig.path("\(name.replacing(", ", with: "-")).sqlite")
    var tags = [("warm", 0..<warmUp)]
    if case .tag(let tag) = audience { tags.append((tag, 0..<devices)) }
    let population = Population.iPhones(devices, tags: tags)
    guard !isFromTemplate else {
      try await population.speaking(LanguageTemplate.locales).register(in: file)
      let template = try await LanguageTemplate.store(in: file)
      return try await reports(
        bench, of: Reached(registry: "{path: \(file)}", devices: devices, warm: (.tag("warm"), warmUp)), sink: sink,
        contents: (ceiling: LanguageTemplate.native, product: Content(template: template)))
    }
    try await population.register(in: file)
    return try await reports(
      bench, of: Reached(registry: "{path: \(file)}", devices: devices, warm: (.tag("warm"), warmUp)), sink: sink)
  }

  private func inDatabase(_ bench: BenchRun, _ devices: Int, sink: Sink) async throws -> [ScenarioReport] {
    guard let database = try BenchDatabase(bench.rig) else {
      var report = ScenarioReport(scenario: name, unit: "pushes", sink: sink.name)
      report.notes.append("not measured: PostgreSQL is not installed")
      return [report]
    }
    return try await database.withRegistries(of: [Crowd(devices: devices, isApple: true)]) { filled in
      let warmUp = (0..<devices).count { filled[0].crowd.device($0).tags.contains("beta") }
      return try await reports(
        bench, of: Reached(registry: filled[0].settings, devices: devices, warm: (.tag("beta"), warmUp)), sink: sink)
    }
  }

  /// The audience of the sends.
  private struct Reached {
    /// The registry in the worker's settings.
    let registry: String
    let devices: Int
    /// The audience of the warm-up send, and its size.
    let warm: (audience: Audience, devices: Int)
  }

  /// With `contents` the ceiling is the same send with another content.
  private func reports(
    _ bench: BenchRun, of reached: Reached, sink: Sink, contents: (ceiling: Content, product: Content)? = nil
  ) async throws -> [ScenarioReport] {
    let rig = bench.rig
    var reports: [ScenarioReport] = []
    for connections in rig.options.connections {
      let pairs = try await bench.pairs {
        guard let contents else {
          return try await bench.ceiling?.run(sink, pushes: reached.devices, connections: connections)
        }
        return try await run(rig, sink: sink, reached, contents.ceiling, connections: connections)
      } product: {
        try await run(rig, sink: sink, reached, contents?.product, connections: connections)
      }
      reports.append(
        ScenarioReport(
          scenario: name, unit: "pushes", connections: connections, sink: sink.name, pairs: pairs, goals: goals))
    }
    return reports
  }

  private func run(
    _ rig: BenchRig, sink: Sink, _ reached: Reached, _ content: Content?, connections: Int
  ) async throws -> Measurement {
    let (devices, warmUp) = (reached.devices, reached.warm.devices)
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink, counting: .devices) { pipeline in
      try await pipeline.produce([Population.send(to: reached.warm.audience, number: 0)])
      let measurement = try await pipeline.withWorkers(1, registry: reached.registry, connections: connections) {
        workers in
        let worker = workers[0]
        _ = try await pipeline.sample(worker, at: warmUp)
        let start = BenchPipeline.Sample(moment: .now, count: warmUp, usage: try worker.usage())
        let send = Population.send(to: audience, number: 1)
        try await pipeline.produce([content.map { content in send.with { $0.content = content } } ?? send])
        return Measurement(planned: devices, from: start, to: try await pipeline.sample(worker, at: warmUp + devices))
      }
      let delivered = try await pipeline.delivered()
      guard delivered == warmUp + devices else {
        throw BenchError("\(delivered) of \(warmUp + devices) pushes were delivered")
      }
      try await pipeline.checkSink(delivered: delivered, before: before)
      return measurement
    }
  }
}

/// A template of the hub in five languages, and a native payload like the ones that it renders.
private enum LanguageTemplate {
  static let locales = ["de", "en", "es", "fr", "ja"]
  static let native = Content(
    native: NativePayloads(.apns, .json(payload(greeting: "Hello", name: "Ada", score: "3 to 1"))))

  /// Stores the template. Returns the content of a send that is rendered from it.
  static func store(in path: String) async throws -> TemplateContent {
    let registry = try RegistryDatabase(SQLiteRegistryConfiguration(path: path))
    let greetings = ["Hallo", "Hello", "Hola", "Salut", "やあ"]
    let variants = zip(locales, greetings).map { locale, greeting in
      (
        locale,
        Content(
          native: NativePayloads(
            .apns, .json(payload(greeting: "{'\(greeting), ' + $(name)}", name: nil, score: "$(score)"))))
      )
    }
    let stored = try await registry.store(
      template: "score", defaultLocale: "en", variants: Dictionary(uniqueKeysWithValues: variants), hub: .default,
      at: SystemWallClock().now())
    // A look-up that gave all devices the same language would be faster, and the counts of pushes the same.
    let query = AudienceQuery(
      hub: .default, audience: .tag("warm"), platforms: .all,
      template: .hub(name: stored.name, version: stored.version))
    let found = Set(try await registry.resolve([query])[0].compactMap(\.variant)).count
    guard found == locales.count else { throw BenchError("the devices get \(found) of \(locales.count) languages") }
    registry.close()
    return TemplateContent(
      name: stored.name, version: stored.version, properties: ["name": "Ada", "score": "3 to 1"])
  }

  private static func payload(greeting: String, name: String?, score: String) -> [UInt8] {
    JSONWriter.object { json in
      json.object("aps") { json in
        json.object("alert") { json in
          json.member("title", name.map { "\(greeting), \($0)" } ?? greeting)
          json.member("body", score)
        }
      }
    }
  }
}
