import CryptoExtras
import FanfareCore
package import FoundationEssentials

extension SimulatorCredentials {
  /// A Google service account that may send to one project, with the members of its key file that senders use.
  package struct GoogleServiceAccount: SimulatedApp, Codable {
    private var type = "service_account"
    /// The project.
    package var projectID: String
    /// The account's name.
    package var clientEmail: String
    /// The key's id.
    package var privateKeyID = randomText(40, of: "0123456789abcdef")
    /// The RS256 key as in the key file: PKCS #8, PEM. Secret.
    package var privateKeyPEM: String
    private var tokenURI = GoogleToken.audience

    enum CodingKeys: String, CodingKey {
      case type
      case projectID = "project_id"
      case clientEmail = "client_email"
      case privateKeyID = "private_key_id"
      case privateKeyPEM = "private_key"
      case tokenURI = "token_uri"
    }

    /// Throws if the key cannot be generated.
    init(projectID: String) throws {
      self.projectID = projectID
      clientEmail = "sender@\(projectID).iam.gserviceaccount.com"
      privateKeyPEM = try _RSA.Signing.PrivateKey(keySize: .bits2048).pkcs8PEMRepresentation
    }

    package static func generate() throws -> Self { try Self(projectID: "fanfare-simulator") }

    package init(files read: (String) throws -> Data) throws {
      self = try JSONDecoder().decode(Self.self, from: read(FileName.serviceAccount))
    }

    /// The key file as Google hands it out. Its `token_uri` is the simulator's, if it runs.
    package func files(_ endpoints: SimulatorEndpoints?) throws -> [String: Data] {
      var account = self
      account.tokenURI = endpoints?.googleTokenURL ?? GoogleToken.audience
      return [FileName.serviceAccount: try SimulatorCredentials.encode(account)]
    }

    package func keys(_ endpoints: SimulatorEndpoints) -> [String: String] {
      [
        "fcm.serviceAccountFile": FileName.serviceAccount, "fcm.host": endpoints.host,
        "fcm.port": "\(endpoints.port(of: .fcm))", "fcm.trustRootsFile": FileName.authority,
      ]
    }
  }

  package var google: GoogleServiceAccount {
    get { self[GoogleServiceAccount.self] }
    set { self[GoogleServiceAccount.self] = newValue }
  }
}

extension SimulatorCredentials.FileName {
  /// The service account's key file.
  package static let serviceAccount = "service-account.json"
}
