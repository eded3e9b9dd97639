import PostgreSQL
import Testing

@testable import Roles

@Suite struct RegistrySettingsTests {
  @Test func patienceIsForEveryWait() async throws {
    let environment = ["FANFARE_REGISTRY_POSTGRES_URL": "host=db", "FANFARE_REGISTRY_POSTGRES_STATEMENT_SECONDS": "90"]
    let settings = try await Settings.load(file: nil, environment: environment).registry
    let usual = settings.database(role: "api", patience: .zero)
    #expect(usual?.applicationName == "fanfare-api")
    #expect(usual?.statementTimeout == .seconds(90) && usual?.waitLimit == .seconds(5))
    let patient = settings.database(role: "registrations", patience: .seconds(60))
    #expect(patient?.statementTimeout == .seconds(90) && patient?.waitLimit == .seconds(60))
  }
}
