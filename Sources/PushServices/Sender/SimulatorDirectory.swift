package import FanfareCore
import FoundationEssentials

/// The directory in which a running simulator writes its addresses and the credentials that it accepts.
///
/// The files have the names and formats in which each vendor issues them. The simulator writes them; this type only
/// reads. Each platform reads its own.
package struct SimulatorDirectory: Sendable {
  let path: String

  package init(path: String) { self.path = path }

  package func endpoints() throws -> Endpoints { try decode(Endpoints.self, file("endpoints.json")) }

  /// The certificate authority to trust, PEM.
  package func authority() throws -> String { try text(file("ca.pem")) }

  package func file(_ name: String) -> String { "\(path)/\(name)" }

  package func text(_ file: String) throws -> String { String(decoding: try contents(file), as: UTF8.self) }

  package func decode<Value: Decodable>(_ type: Value.Type, _ file: String) throws -> Value {
    try JSONDecoder().decode(type, from: try contents(file))
  }

  func contents(_ file: String) throws -> Data { try Data(contentsOf: URL(filePath: file)) }

  /// The simulator's addresses. The host is an IPv4 address or a name.
  package struct Endpoints: Decodable {
    package let host: String
    /// The platforms with a listener of their own.
    private let ports: [String: Int]
    private let httpsPort: Int

    /// The URL of the listener that the other platforms and the token endpoints share.
    package var httpsURL: String { "https://\(host):\(httpsPort)" }

    package func port(of platform: Platform) -> Int { ports[platform.name] ?? httpsPort }
  }
}
