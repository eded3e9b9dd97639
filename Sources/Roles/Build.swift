import Operations
import RDKafka

/// What this program was made of.
package enum Build {
  /// The program's own version.
  package static let version = "0.1.0"

  /// The version of Swift it was compiled with, as far as the language tells.
  static var swift: String {
    #if swift(>=6.3)
    "6.3"
    #else
    "6.2"
    #endif
  }

  /// For `fanfare_build_info`.
  static var information: BuildInformation {
    BuildInformation(version: version, swift: swift, librdkafka: Librdkafka.version)
  }
}
