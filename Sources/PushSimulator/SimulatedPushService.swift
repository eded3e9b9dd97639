package import FanfareCore
package import FoundationEssentials
package import HTTP2

/// A push service that the simulator plays, with its vendor's token endpoint if there is one.
///
/// There is one type for each platform. The injector has its faults and counts, and keeps the accepted pushes.
package protocol SimulatedPushService: Sendable {
  associatedtype App: SimulatedApp

  static var platform: Platform { get }
  /// Devices that always get the same answer. If a prefix is the beginning of another, the longer one comes first.
  static var prefixes: [HandlePrefix] { get }
  /// The form in which the store compares handles.
  static func normalized(handle: String) -> String
  /// The name under which requests to the token endpoint are counted; nil if there is none.
  static var tokenEndpoint: String? { get }
  /// The service's own hosts, for the certificate: clients that are redirected here still expect them.
  static var hosts: [String] { get }
  /// The stream limit of a new connection to the service's own HTTP/2 listener; nil if it has none.
  static var streams: Int? { get }
  /// The debug data of a GOAWAY.
  static var goAwayReason: String { get }
  /// Whether no path is another service's, so that it is asked last.
  static var takesEveryRequest: Bool { get }

  /// Throws if the app's key is invalid.
  init(_ configuration: SimulatorConfiguration, app: App, injector: FaultInjector) throws

  /// The reaction to a request to the HTTP/1.1 listener, which all services share; nil if it is for another one.
  func reaction(to request: SimulatedRequest) -> Reaction?
  /// The reaction to a request to its own HTTP/2 listener.
  func reaction(to request: HTTP2ServerRequest, on connection: Int) -> Reaction

  /// Expires all tokens in use.
  func expireTokens()
  /// Replaces the app's key or secret, as the vendor's console does: nothing made with the old one is valid any more.
  func replaceKey() throws -> App
  /// The URLs for people, by name.
  func addresses(_ endpoints: SimulatorEndpoints) -> KeyValuePairs<String, String>
}

extension SimulatedPushService {
  package static var prefixes: [HandlePrefix] { [] }
  package static func normalized(handle: String) -> String { handle }
  package static var tokenEndpoint: String? { nil }
  package static var hosts: [String] { [] }
  package static var streams: Int? { nil }
  package static var goAwayReason: String { "" }
  package static var takesEveryRequest: Bool { false }

  package func reaction(to request: SimulatedRequest) -> Reaction? { nil }
  package func reaction(to request: HTTP2ServerRequest, on connection: Int) -> Reaction {
    reaction(to: SimulatedRequest(request)) ?? Reaction(ServiceAnswer(status: 404))
  }
  package func expireTokens() {}
  package func addresses(_ endpoints: SimulatorEndpoints) -> KeyValuePairs<String, String> { [:] }

  static func make(
    _ configuration: SimulatorConfiguration, _ credentials: SimulatorCredentials, _ injector: FaultInjector
  ) throws -> any SimulatedPushService {
    try Self(configuration, app: credentials[App.self], injector: injector)
  }

  static func generateApp() throws -> any SimulatedApp { try App.generate() }
  static func readApp(_ read: (String) throws -> Data) throws -> any SimulatedApp { try App(files: read) }
  /// As `replaceKey`, but returns the files of the app.
  func replacedFiles(_ endpoints: SimulatorEndpoints) throws -> [String: Data] {
    try replaceKey().files(endpoints)
  }
}

/// The keys and secrets of one app at a service. They are made up and valid nowhere else.
package protocol SimulatedApp: Sendable {
  static func generate() throws -> Self
  /// Reads the files of `files`, which `read` gives by name.
  init(files read: (String) throws -> Data) throws
  /// The files in the vendor's formats, by name. The endpoints are nil for a simulator that does not run.
  func files(_ endpoints: SimulatorEndpoints?) throws -> [String: Data]
  /// The keys below `hub.NAME` with which a hub pushes to the service. Paths are relative to the simulator's directory.
  func keys(_ endpoints: SimulatorEndpoints) -> [String: String]
}

/// A request to a simulated service.
package struct SimulatedRequest: Sendable {
  package let method: String
  /// Path and query, byte for byte.
  package let target: String
  /// The host and port that the client addressed.
  package let authority: String
  package let headers: [HeaderField]
  package let body: [UInt8]

  package var path: Substring { target.prefix { $0 != "?" } }

  /// The value of the first field with this name, which is given in lower case.
  package subscript(name: String) -> String? { headers.first { $0.isNamed(name) }?.value }

  /// The name of a field that occurs twice, in lower case; nil if none does.
  var repeatedField: String? {
    var names: Set<String> = []
    return headers.lazy.map { $0.name.lowercased() }.first { !names.insert($0).inserted }
  }

  /// The fields to keep: all but the credential.
  package var kept: [HeaderField] { headers.filter { !$0.isNamed("authorization") } }

  /// The type of the body in lower case, without parameters.
  var mediaType: String? { self["content-type"]?.prefix { $0 != ";" }.lowercased().filter { $0 != " " } }

  /// The form of a token request; empty if the content type is another.
  var form: FormBody { FormBody(mediaType == "application/x-www-form-urlencoded" ? body : []) }

  /// The token of the credential; nil if there is none. The scheme may be in any case (RFC 9110 §11.1).
  var bearerToken: String? {
    guard let authorization = self["authorization"], authorization.prefix(7).lowercased() == "bearer " else {
      return nil
    }
    return String(authorization.dropFirst(7))
  }
}

extension SimulatedRequest {
  init(_ request: HTTP2ServerRequest) {
    self.init(
      method: request.method, target: request.path, authority: request.authority,
      headers: request.headers.map { HeaderField($0.name, $0.value) }, body: request.body)
  }
}

extension HeaderField {
  func isNamed(_ name: String) -> Bool {
    self.name == name || self.name.utf8.count == name.utf8.count && self.name.lowercased() == name
  }
}

/// A platform whose push service the simulator can play: its vocabulary, with the double.
package protocol SimulatedPlatform: PlatformVocabulary {
  associatedtype Simulated: SimulatedPushService
}

extension SimulatedPlatform {
  fileprivate static var double: any SimulatedPushService.Type { Simulated.self }
}

/// The simulated services of the platforms.
enum SimulatedPushServices {
  /// The services in the order in which they are offered a request.
  static let all: [any SimulatedPushService.Type] = {
    let all: [any SimulatedPushService.Type] = Platform.allCases.map { platform in
      guard let simulated = platform.vocabulary as? any SimulatedPlatform.Type else {
        preconditionFailure("\(platform) has no double")
      }
      return simulated.double
    }
    return all.filter { !$0.takesEveryRequest } + all.filter { $0.takesEveryRequest }
  }()

  static func service(of platform: Platform) -> (any SimulatedPushService.Type)? {
    all.first { $0.platform == platform }
  }
}

/// A service that the simulator plays: that of a platform, or its token endpoint. Faults and counts are per service.
package struct SimulatedService: Hashable, Sendable {
  /// The platform's place; that of a token endpoint comes after those of all platforms.
  let index: Int

  private init(index: Int) { self.index = index }

  /// The service of a platform.
  package init(_ platform: Platform) { index = platform.ordinal }

  /// The token endpoint of a platform.
  package init(tokensOf platform: Platform) { index = Platform.count + platform.ordinal }

  /// Reads a name.
  package init?(rawValue name: String) {
    guard let index = Self.names.firstIndex(of: name) else { return nil }
    self.index = index
  }

  package static let allCases = names.indices.filter { names[$0] != nil }.map { Self(index: $0) }
  private static let names: [String?] =
    Platform.allCases.map { Optional($0.name) }
    + Platform.allCases.map { platform in SimulatedPushServices.service(of: platform)?.tokenEndpoint }

  static var count: Int { names.count }

  package var rawValue: String { Self.names[index] ?? "" }

  /// The platform of the service; nil for a token endpoint.
  package var platform: Platform? { index < Platform.count ? Platform.allCases[index] : nil }

  /// Whether it has a listener of its own.
  var hasListener: Bool { platform.flatMap { SimulatedPushServices.service(of: $0)?.streams } != nil }

  func includes(_ platform: Platform) -> Bool { self == Self(platform) || self == Self(tokensOf: platform) }
}
