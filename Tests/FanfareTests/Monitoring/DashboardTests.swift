import Foundation
import Testing

/// Checks Grafana's dashboards in `deploy/monitoring/dashboards`.
@Suite struct DashboardTests {
  private struct Dashboard: Decodable {
    struct Variable: Decodable {
      let name: String
      let type: String
    }

    struct Templating: Decodable { let list: [Variable] }

    struct Panel: Decodable {
      struct Source: Decodable, Equatable {
        let type: String
        let uid: String
      }

      struct Target: Decodable {
        let expr: String
        let legendFormat: String
        let datasource: Source
      }

      struct Position: Decodable {
        let x, y, w, h: Int
      }

      struct Field: Decodable {
        struct Defaults: Decodable { let unit: String }

        let defaults: Defaults
      }

      let id: Int
      let type: String
      let title: String
      let description: String?
      let gridPos: Position
      let fieldConfig: Field?
      let targets: [Target]?
    }

    let uid: String
    let title: String
    let schemaVersion: Int
    let templating: Templating
    let panels: [Panel]
  }

  private static let names = ["broadcasts", "delivery", "http2", "hub", "kafka", "overview"]

  private static func dashboard(_ name: String) throws -> Dashboard {
    let file = Monitoring.directory.appending(path: "dashboards/\(name).json")
    return try JSONDecoder().decode(Dashboard.self, from: try Data(contentsOf: file))
  }

  @Test(.enabled(if: Monitoring.find("python3") != nil, "python3 is not installed"), .timeLimit(.minutes(1)))
  func filesAreAsTheGeneratorWritesThem() async throws {
    let check = try await Monitoring.run(["dashboards/generate", "--check"], program: Monitoring.find("python3"))
    #expect(check.status == 0, "\(check.output)")
  }

  @Test func everyDashboardHasItsFileAndNothingElseHas() throws {
    let files = try FileManager.default.contentsOfDirectory(
      atPath: Monitoring.directory.appending(path: "dashboards").path)
    #expect(files.filter { $0.hasSuffix(".json") }.sorted() == Self.names.map { "\($0).json" })
  }

  @Test(arguments: names) func everyPanelExplainsItselfAndAsksTheChosenSource(_ name: String) throws {
    let dashboard = try Self.dashboard(name)
    #expect(dashboard.uid == "fanfare-\(name)")
    #expect(dashboard.schemaVersion >= 38)
    #expect(dashboard.templating.list.first?.type == "datasource")
    #expect(dashboard.templating.list.contains { $0.name == "hub" } == (name == "hub"))
    #expect(Set(dashboard.panels.map(\.id)).count == dashboard.panels.count)
    let panels = dashboard.panels.filter { $0.type != "row" }
    #expect(panels.count >= 8)
    for panel in panels {
      #expect(panel.description?.isEmpty == false, "\(panel.title)")
      #expect(panel.fieldConfig?.defaults.unit.isEmpty == false, "\(panel.title)")
      let targets = try #require(panel.targets)
      #expect(!targets.isEmpty, "\(panel.title)")
      for target in targets {
        #expect(target.datasource == .init(type: "prometheus", uid: "${datasource}"), "\(panel.title)")
        #expect(panel.type != "timeseries" || !target.legendFormat.isEmpty, "\(panel.title)")
        try Monitoring.expectKnownMetrics(in: target.expr)
      }
    }
  }

  @Test(arguments: names) func panelsDoNotOverlap(_ name: String) throws {
    var taken: Set<[Int]> = []
    for panel in try Self.dashboard(name).panels {
      let place = panel.gridPos
      #expect(place.x + place.w <= 24, "\(panel.title)")
      for x in place.x..<place.x + place.w {
        for y in place.y..<place.y + place.h {
          #expect(taken.insert([x, y]).inserted, "\(panel.title)")
        }
      }
    }
  }
}
