import AsyncHTTPClient
package import FanfareCore
package import Logging
import NIOSSL

/// An OAuth 2 client that gets access tokens for itself (RFC 6749 §4.4), as Kafka's OAUTHBEARER needs them.
package struct ClientCredentials: Sendable {
  private let endpoint: String
  private let clientID: String
  private let scope: String?
  private let tls: TLSConfiguration
  private let clock: any WallClock
  private let logger: Logger

  /// The time limit of one request.
  private static let timeout = Duration.seconds(10)

  /// `trustRoots` are certificates (PEM) to trust instead of the system's.
  ///
  /// Throws `PushConfigurationError` unless the endpoint is an https URL and the certificates can be read.
  package init(
    endpoint: String, clientID: String, scope: String?, trustRoots: String?, clock: any WallClock = SystemWallClock(),
    logger: Logger
  ) throws(PushConfigurationError) {
    guard endpoint.hasPrefix("https://") else {
      throw PushConfigurationError(field: "tokenEndpoint", problem: "must be an https URL")
    }
    tls = try .pushService(trustRoots: trustRoots)
    (self.endpoint, self.clientID, self.scope) = (endpoint, clientID, scope)
    (self.clock, self.logger) = (clock, logger)
  }

  /// Fetches a token with a client secret. Redirects are not followed.
  ///
  /// Throws `Refusal` if the endpoint does not grant one within ten seconds.
  package func token(secret: String) async throws(Refusal) -> (value: String, lifetime: Duration) {
    var form: [TokenClient.Field] = [("grant_type", "client_credentials")]
    if let scope { form.append(("scope", scope)) }
    let answer = await post(form, secret: secret)
    switch answer {
    case .granted(let token, let lifetime): return (token, lifetime)
    case .refused, .unavailable: throw Refusal(description: "the token endpoint answers: \(answer)")
    }
  }

  private func post(_ form: [TokenClient.Field], secret: String) async -> TokenAnswer {
    var answer = TokenAnswer.unavailable(status: 0, retryAfter: nil)
    await HTTPClient.withPushService(tls: tls, maximumConnectionsPerHost: 1) { client in
      let tokens = TokenClient(client: client, url: endpoint, timeout: Self.timeout, clock: clock, logger: logger)
      answer = await tokens.post(form, user: clientID, password: secret)
    }
    return answer
  }

  /// The endpoint did not grant a token. The description contains no secret.
  package struct Refusal: Error, CustomStringConvertible {
    package let description: String
  }
}
