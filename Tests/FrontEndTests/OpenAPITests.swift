import FanfareCore
import Foundation
import Operations
import Support
import Testing

@testable import FrontEnd

/// Compares the OpenAPI description with the front end.
@Suite(.timeLimit(.minutes(2))) struct OpenAPITests {
  private let document: OpenAPIDocument

  init() throws {
    document = try OpenAPIDocument()
  }

  @Test func descriptionIsServedWithoutCredentials() async throws {
    try await Harness.run { app in
      let reply = try await app.request(.get, "/openapi.json", as: nil)
      #expect(reply.status == 200 && reply["Content-Type"] == "application/json")
      #expect(try reply.json["openapi"] == "3.1.0")
      #expect(reply.body == PackageResources.openapi_json)
      let head = try await app.request(.head, "/openapi.json", as: nil)
      #expect(head.status == 200 && head.body.isEmpty && head["Content-Type"] == "application/json")
      let mark = try #require(reply["ETag"])
      for (marks, status) in [(mark, 304), ("\"other\", W/\(mark)", 304), ("*", 304), ("\"other\"", 200)] {
        let again = try await app.request(.get, "/openapi.json", as: nil, headers: [("If-None-Match", marks)])
        #expect(again.status == status && again["ETag"] == mark, "\(marks)")
        #expect(again.body.isEmpty == (status == 304))
      }
      try await app.request(.post, "/openapi.json", as: nil).expectProblem(405, "methodNotAllowed")
      // The route belongs to the process, not to a hub.
      try await app.request(.get, "/hubs/default/openapi.json", as: nil).expectProblem(404, "notFound")
    }
  }

  @Test func describedRoutesEqualRegisteredRoutes() throws {
    let temporary = try TemporaryRegistry()
    let frontEnd = try FrontEnd(
      configuration: FrontEndConfiguration(),
      hubs: [FrontEndHub(name: .default, authenticators: [try DemoAuthenticator(boundTo: "127.0.0.1")])],
      dependencies: Harness.Setup().dependencies(over: temporary.registry), operations: Self.operations,
      logger: TestKafka.quietLogger)
    // The document describes HEAD once for all GET routes.
    let routes = frontEnd.routes.names
    let described = Set(
      document.operations.flatMap { operation in
        operation.prefixes.map { "\(operation.method.rawValue) \($0)\(operation.path)" }
      })
    #expect(routes.subtracting(described).sorted() == [], "routes that are not described")
    #expect(described.subtracting(routes).sorted() == [], "described routes that do not exist")
  }

  @Test func referencesResolveAndEveryComponentIsUsed() {
    let references = document.references
    for reference in references { #expect(document.target(of: reference) != nil, "\(reference)") }
    for (kind, components) in document.json["components"]?.members ?? [:] where kind != "securitySchemes" {
      for name in components.members.keys { #expect(references.contains("#/components/\(kind)/\(name)")) }
    }
  }

  @Test func everyProblemCodeIsDescribedWithItsStatus() throws {
    let schema = try #require(document.target(of: "#/components/schemas/ProblemCode"))
    #expect(schema["enum"]?.elements == ProblemCode.allCases.map { JSON.string($0.rawValue) })
    let descriptions = schema["x-enumDescriptions"]?.members ?? [:]
    #expect(descriptions.count == ProblemCode.allCases.count)
    var statuses: [String: String] = [:]
    for code in ProblemCode.allCases {
      let status = try #require(try JSON(Problem(refusal: Refusal(code, ""), requestID: "").document)["status"])
        .serialized()
      statuses[code.rawValue] = status
      #expect(descriptions[code.rawValue]?.text?.hasPrefix("\(status): ") == true, "\(code)")
    }
    var answered: Set<String> = []
    for operation in document.operations {
      let responses = operation.json["responses"]?.members ?? [:]
      #expect(responses["default"] != nil, "\(operation.method) \(operation.path)")
      for (status, response) in responses {
        let content = try #require(document.resolved(response))["content"]
        guard let code = content?["application/problem+json"]?["schema"]?["properties"]?["code"] else { continue }
        let codes = (code["enum"]?.elements ?? [code["const"]].compactMap { $0 }).compactMap(\.text)
        #expect(!codes.isEmpty)
        answered.formUnion(codes)
        for code in codes where status != "default" {
          #expect(statuses[code] == status, "\(code) in \(operation.method) \(operation.path)")
        }
      }
    }
    #expect(answered == Set(statuses.keys))
  }

  @Test func describedEnumsEqualTheCode() {
    let names = Platform.allCases.flatMap { [$0.name] + $0.vocabulary.aliases }
    let kinds = Platform.allCases.flatMap { [$0.name] + $0.vocabulary.aliases + [$0.vocabulary.system] }
    for (schema, member, words) in [
      ("DeadLetterReason", nil, DeadLetter.Reason.allCases.map(\.rawValue)),
      ("SendState", nil, SendReport.State.allCases.map(\.rawValue)),
      ("Platform", nil, Platform.allCases.map(\.name)),
      ("PlatformName", nil, names),
      ("Device", "platform", kinds),
      ("InstalledDevice", "platform", kinds),
      ("PushHeader", nil, Set(Platform.allCases.flatMap { $0.vocabulary.headers }).sorted()),
      ("Outcome", nil, DeviceResult.Outcome.allCases.map(\.rawValue)),
      ("BroadcastProgress", "course", BroadcastControl.State.allCases.map(\.rawValue)),
      ("BroadcastProgress", "cause", BroadcastControl.Cause.allCases.map(\.rawValue)),
      ("Send", "priority", Priority.allCases.map(\.rawValue)),
      ("Problem", "quota", QuotaName.allCases.map(\.rawValue)),
    ] as [(String, String?, [String])] {
      let whole = document.target(of: "#/components/schemas/\(schema)")
      let part = if let member { whole?["properties"]?[member] } else { whole }
      #expect(part?["enum"]?.elements == words.map(JSON.string), "\(schema) \(member ?? "")")
    }
    for (schema, member, words) in [
      ("Native", nil, names + ["headers"]), ("SendStanding", "counts", Platform.allCases.map(\.name)),
    ] as [(String, String?, [String])] {
      let whole = document.target(of: "#/components/schemas/\(schema)")?["properties"]
      let members = (member.map { whole?[$0]?["properties"] } ?? whole)?.members
      #expect(Set((members ?? [:]).keys) == Set(words), "\(schema) \(member ?? "")")
    }
  }

  /// The parts of a send have the same members and limits in a body and in a record.
  @Test(arguments: ["SendTemplate", "Audience", "Message"])
  func sendsAreDescribedAsOnTheTopics(part: String) throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "deploy/schemas/send.json")
    let given = document.target(of: "#/components/schemas/\(part)")?["properties"]?.members ?? [:]
    let recorded = try JSON(Array(Data(contentsOf: file)))["$defs"]?[part]?["properties"]?.members ?? [:]
    #expect(Set(given.keys) == Set(recorded.keys))
    // An expression of a caller is shorter than what workers read; a device has a schema for each platform.
    for (name, schema) in given where name != "expression" && name != "device" {
      guard let other = recorded[name], schema["$ref"] == nil else { continue }
      for rule in ["type", "maximum", "minItems", "maxItems", "maxProperties", "x-maxBytes"] {
        #expect(schema[rule] == other[rule], "\(part).\(name): \(rule)")
      }
    }
  }

  /// Security requirements are alternatives.
  @Test func operationsRequireTheDescribedScopes() async throws {
    try await Harness.run({ $0.operations = Self.operations }) { app in
      for operation in document.operations {
        let path = operation.path.replacing("{id}", with: "1").replacing("{tag}", with: "news")
          .replacing("{name}", with: "goal")
        let label = "\(operation.method) \(path)"
        let alternatives = (operation.json["security"] ?? document.json["security"])?.elements ?? []
        let anonymous = try await app.request(operation.method, path, as: nil)
        #expect((anonymous.status == 401) == !alternatives.isEmpty, "\(label)")
        for scopes in Scope.allCases.map({ [$0] }) + [Scope.allCases, []] {
          let user = ScopedDemo.user(scopes)
          let needed = alternatives.compactMap { $0["basic"] }.map { Set($0.elements.compactMap(\.text)) }
          let reply = try await app.request(operation.method, path, as: user)
          #expect(
            (reply.status == 403) == !(needed.isEmpty || needed.contains { $0.isSubset(of: scopes.map(\.rawValue)) }),
            "\(label) as \(user)")
          let statuses = operation.json["responses"]?.members ?? [:]
          #expect(statuses["\(reply.status)"] != nil, "\(label) as \(user): \(reply.status)")
        }
      }
    }
  }

  @Test func exampleBodiesAreAccepted() async throws {
    // An installation is put before it is patched.
    let order: [Harness.Method] = [.post, .put, .patch]
    let bodies = try document.bodies().sorted { left, right in
      let (first, second) = (
        order.firstIndex(of: left.operation.method) ?? 0, order.firstIndex(of: right.operation.method) ?? 0
      )
      return first == second ? left.operation.path > right.operation.path : first < second
    }
    let operations = document.operations.filter { $0.json["requestBody"] != nil }.map { "\($0.method) \($0.path)" }
    #expect(Set(bodies.map { "\($0.operation.method) \($0.operation.path)" }) == Set(operations))
    let broadcast = SendReport(
      id: .random(), hub: .default, state: .accepted, sender: "opal", isBroadcast: true, acceptedAt: nil,
      settledAt: nil, counts: [:], devices: nil)
    try await Harness.run({ $0.history = ScriptedHistory(reports: [broadcast]) }) { app in
      // Previewed before one is stored.
      _ = try await app.request(
        .put, "/api/templates/goal", as: "opal",
        body: #"{"defaultLocale":"de","variants":{"de":{"message":{"title":"Tor"}}}}"#)
      for body in bodies {
        var path = body.operation.path.replacing("{name}", with: "goal")
        if path.contains("{id}") {
          let id =
            path.hasPrefix("/api/installations/")
            ? "phone-1" : path.hasPrefix("/api/sends/") ? "\(broadcast.id)" : try await app.issue(handle: nil)
          path = path.replacing("{id}", with: id)
        }
        let parameters = (body.operation.json["parameters"]?.elements ?? []).compactMap(document.resolved)
        let query = try parameters.filter { $0["in"] == "query" && $0["required"] == true }.map { parameter in
          "\(try #require(parameter["name"]?.text))=\(try #require(parameter["example"]?.text))"
        }
        if !query.isEmpty { path += "?" + query.joined(separator: "&") }
        let reply = try await app.request(
          body.operation.method, path, as: "opal", body: body.text, type: body.mediaType)
        let isDescribed = body.operation.json["responses"]?["\(reply.status)"] != nil
        #expect(
          (200..<300).contains(reply.status) && isDescribed, "\(path) \(body.text): \(reply.status) \(reply.text)")
        for line in reply.text.split(separator: "\n") where body.mediaType.hasSuffix("ndjson") {
          #expect(try JSON(line.utf8)["id"] != nil, "\(line)")
        }
      }
    }
  }

  private static let operations = OperationsRoutes(metrics: PrometheusMetrics(), health: HealthRegistry(readiness: []))
}
