import FanfareCore
import FrontEnd
import HTTPServer
import Logging
import Metrics
import Operations
import ServiceLifecycle

/// Keeps the certificate of the callers' listener current, and reports when it expires.
struct ListenerCertificate {
  private let settings: TLSSettings
  private let tls: ServerTLS
  private let clock: any WallClock
  private let expiry: Gauge

  init(_ settings: TLSSettings, tls: ServerTLS, clock: any WallClock, metrics: any MetricsFactory) {
    (self.settings, self.tls, self.clock) = (settings, tls, clock)
    expiry = Gauge(label: "fanfare_tls_certificate_expiry_timestamp_seconds", factory: metrics)
    expiry.record(tls.expiry.seconds)
  }

  /// Uses the files' new contents when they change. A broken pair keeps the old one and is logged.
  func watch(logger: Logger) -> CredentialWatch {
    CredentialWatch(metadata: [LogKeys.listener: "api"], files: settings.files, logger: logger) {
      guard try tls.use(try settings.identity()) else { return false }
      expiry.record(tls.expiry.seconds)
      return true
    }
  }

  /// Fails when the certificate has expired: clients then refuse the connection.
  var check: NamedCheck {
    NamedCheck("certificate") {
      guard tls.expiry <= clock.now() else { return nil }
      return "the listener's certificate has expired; replace the files of api.tls.certificateFile and api.tls.keyFile"
    }
  }
}
