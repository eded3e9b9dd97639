import Foundation

/// The metrics of a role in a process of its own.
struct RoleMetrics: Sendable {
  private let client: APIClient

  /// `address` is the role's operations listener.
  init(operations address: String) { client = APIClient(base: "http://" + address) }

  /// The sum of a metric's series whose labels contain `label`; 0 without one.
  func sum(_ name: String, label: String = "") async throws -> Double {
    let text = String(decoding: try await client.request("GET", "/metrics", user: "bench"), as: UTF8.self)
    return text.split(separator: "\n").reduce(0) { sum, line in
      guard line.hasPrefix(name), line.dropFirst(name.count).first.map({ "{ ".contains($0) }) == true,
        let end = line.lastIndex(of: " "), label.isEmpty || line[..<end].contains(label)
      else { return sum }
      return sum + (Double(line[line.index(after: end)...]) ?? 0)
    }
  }

  /// The number of the topic's partitions that a worker consumes.
  func partitions(of topic: String) async throws -> Int {
    Int(try await sum("fanfare_consumer_partitions", label: "topic=\"\(topic)\""))
  }

  /// Waits until the workers consume all partitions of each topic in even shares: they differ by at most one.
  ///
  /// Returns the shares in the first topic. Throws, with the last ones, after a minute.
  @discardableResult
  static func waitForEvenShares(of topics: [String], partitions: Int, among workers: [RoleMetrics]) async throws
    -> [Int]
  {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      var shares: [[Int]] = []
      for topic in topics {
        var ofTopic: [Int] = []
        for worker in workers { ofTopic.append(try await worker.partitions(of: topic)) }
        shares.append(ofTopic)
      }
      let areEven = shares.allSatisfy { share in
        share.reduce(0, +) == partitions && (share.max() ?? 0) - (share.min() ?? 0) <= 1
      }
      if areEven { return shares[0] }
      guard ContinuousClock.now < deadline else {
        throw BenchError("the workers have \(shares) of \(partitions) partitions of \(topics)")
      }
      try await Task.sleep(for: .milliseconds(200))
    }
  }
}
