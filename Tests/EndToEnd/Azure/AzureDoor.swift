import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import fanfare_dev

/// A caller of the Azure door: every request is written as bytes to a socket of its own, as Azure's SDKs send it.
struct AzureDoor: Sendable {
  /// An answer, as the bytes that came back.
  struct Answer: Sendable {
    let status: Int
    /// By names in lower case.
    let headers: [String: String]
    let body: String

    /// The last segment of the path in `Location`, or in the other header that names an object.
    func id(in header: String = "location") throws -> String {
      let path = try #require(headers[header]?.split(separator: "?").first)
      return try #require(path.split(separator: "/").last.map(String.init))
    }
  }

  /// The api's `host:port`.
  let address: String
  let hub: String
  let rule: String
  let key: String
  /// The path in front of the hub's name.
  var prefix = ""
  /// The query parameter of every request.
  var version = "api-version=2020-06"

  /// The door of the api at this address, without TLS, for the rule with all rights.
  init(_ api: Caller, rule: String = AzureSettings.fullRule, key: String = AzureSettings.fullKey) {
    address = String(api.base.dropFirst("http://".count))
    (hub, self.rule, self.key) = ("default", rule, key)
  }

  /// A connection string with the scheme, which selects TLS (`sb`) or plain HTTP for the clients that accept it.
  func connectionString(scheme: String = "http") -> String {
    "Endpoint=\(scheme)://\(address)\(prefix)/;SharedAccessKeyName=\(rule);SharedAccessKey=\(key)"
  }

  /// Sends a request and returns the answer. `path` is below the hub, with its own query if it has one.
  func send(
    _ method: String, _ path: String, headers: [(String, String)] = [], body: String? = nil
  ) async throws -> Answer {
    let target = "\(prefix)/\(hub)\(path)\(path.contains("?") ? "&" : "?")\(version)"
    var lines = [
      "\(method) \(target) HTTP/1.1", "Host: \(address)", "Authorization: \(token(for: target))",
      "TrackingId: \(UUID().uuidString.lowercased())", "x-ms-version: 2020-06",
      "User-Agent: NHub/2020-06 (api-origin=DotNetSdk;os=Linux;os-version=6.1)", "Connection: close",
    ]
    lines += headers.map { "\($0): \($1)" }
    if let body {
      lines.append("Content-Length: \(body.utf8.count)")
    } else if method != "GET" {
      lines.append("Content-Length: 0")
    }
    let request = (lines + ["", ""]).joined(separator: "\r\n") + (body ?? "")
    return try Self.parsed(try await exchange(request))
  }

  /// A token as .NET's SDK makes it: for the whole URL.
  func token(for target: String) -> String {
    AzureClient.token(for: "http://\(address)\(target)", rule: rule, key: key)
  }

  private func exchange(_ request: String) async throws -> String {
    let parts = address.split(separator: ":")
    let (host, port) = (String(try #require(parts.first)), try #require(parts.last.flatMap { Int($0) }))
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(
      host: host, port: port
    ) { channel in
      channel.eventLoop.makeCompletedFuture {
        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
      }
    }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(string: request))
      var received = ByteBuffer()
      for try await var chunk in inbound { received.writeBuffer(&chunk) }
      return String(buffer: received)
    }
  }

  private static func parsed(_ text: String) throws -> Answer {
    let end = try #require(text.range(of: "\r\n\r\n"), "no whole answer: \(text)")
    let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
    let status = try #require(lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    let fields = lines.dropFirst().compactMap { line -> (String, String)? in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      return (line[..<colon].lowercased(), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
    }
    return Answer(
      status: status, headers: Dictionary(fields) { first, _ in first }, body: String(text[end.upperBound...]))
  }
}
