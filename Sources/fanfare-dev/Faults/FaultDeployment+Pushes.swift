import FanfareCore
import Foundation

/// Sets faults of the simulated push services, and reads the pushes that they have accepted.
extension FaultDeployment {
  /// Replaces the service's key; only the new one is accepted from now on. Returns the new files.
  func replaceKey(of service: String) async throws -> [String: String] {
    let answer = try await simulated().request("POST", "/keys/replace?service=\(service)", user: "faults")
    return try JSONDecoder().decode([String: String].self, from: answer)
  }

  /// Overwrites the old key files, as an operator would.
  nonisolated func install(_ files: [String: String]) throws {
    for (name, text) in files {
      try Data(text.utf8).write(to: directory.appending(path: "simulator/\(name)"), options: .atomic)
    }
  }

  /// All arrivals on a platform with few devices.
  func arrivals(on platform: Platform) async throws -> [PushArrival] {
    struct Page: Decodable {
      struct Device: Decodable { let handle: String }
      let devices: [Device]
    }
    // They fit one page.
    let list = try await simulated().request("GET", "/devices?platform=\(platform.name)&limit=1000", user: "faults")
    return try await arrivals(on: platform, at: JSONDecoder().decode(Page.self, from: list).devices.map(\.handle))
  }

  /// The arrivals on the devices. The simulator forgets devices beyond 100,000; they have none.
  func arrivals(on platform: Platform, at devices: [String]) async throws -> [PushArrival] {
    let simulator = try simulated()
    var arrivals: [PushArrival] = []
    for device in devices {
      let path = device.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? device
      do {
        let received = try await simulator.request("GET", "/devices/\(platform.name)/\(path)", user: "faults")
        arrivals += PushArrival.read(received, platform: platform, device: device)
      } catch let refusal as APIClient.Refusal where refusal.status == 404 {
        continue
      }
    }
    return arrivals
  }

  /// Injects a fault into the simulator. `fault` is a JSON object; see the simulator's admin routes.
  func order(_ fault: String) async throws {
    _ = try await simulated().request("POST", "/faults", user: "faults", body: fault)
  }

  /// Removes all faults from the simulator.
  func withdrawFaults() async throws { _ = try await simulated().request("DELETE", "/faults", user: "faults") }

  /// The number of pushes that arrived, and of those that arrived again.
  func arrivals() async throws -> (accepted: Int, repeated: Int) {
    struct Counts: Decodable {
      let accepted: Int
      let duplicates: Int
    }
    let counts = try JSONDecoder().decode(
      Counts.self, from: try await simulated().request("GET", "/counts", user: "faults"))
    return (counts.accepted, counts.duplicates)
  }
}
