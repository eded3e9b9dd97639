import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes
import NIOCore

/// Feedback: the devices that a push service reported as gone, as one file behind a signed URL.
struct FeedbackRoutes: Sendable {
  private static let path = "feedbackcontainer/devices.xml"
  private static let pageSize = 500

  let operations: FrontEndOperations
  private let downloads: DownloadGate

  init(_ operations: FrontEndOperations, _ downloads: DownloadGate) {
    (self.operations, self.downloads) = (operations, downloads)
  }

  var routes: [AzureRoute] {
    [
      AzureRoute(.get, "feedbackcontainer", .manage) { request, caller in
        AzureAnswer.document(
          Array(SignedURL.url(Self.path, request, caller.hubName, operations).utf8), type: "text/plain; charset=utf-8")
      },
      AzureRoute(signed: .get, Self.path) { request in
        guard let hub = request.hub else { throw Refusal(.notFound, "There is no such file.") }
        return Answer(
          status: .ok, headers: [.contentType: AzureAnswer.xml, .cacheControl: "no-store"],
          body: body(of: hub, in: try downloads.enter(hub)))
      },
    ]
  }

  /// Documents one after the other, as Azure writes them, in UTF-8.
  private func body(of hub: HubName, in place: DownloadGate.Place) -> AnswerBody {
    .inParts { [operations, place] writer in
      defer { withExtendedLifetime(place) {} }
      var last: RemovedRegistration.Position?
      while true {
        let page = try await operations.inquiry.dead(
          hub: hub, after: last, limit: Self.pageSize, at: operations.clock.now())
        var documents: [UInt8] = []
        for removed in page {
          removed.append(to: &documents)
          documents.append(UInt8(ascii: "\n"))
        }
        if !documents.isEmpty { try await writer.write(ByteBuffer(bytes: documents)) }
        last = page.last?.position
        if page.count < Self.pageSize { break }
      }
    }
  }
}

extension RemovedRegistration {
  fileprivate func append(to document: inout [UInt8]) {
    document.appendElement("PnsFeedback", attributes: XMLNamespace.ofDescriptions) { feedback in
      feedback.appendElement("FeedbackTime", at.description)
      feedback.appendElement("NotificationSystemError", "ExpiredChannel")
      // Known while the device can be restored.
      if let quarantine {
        let service = PushServiceName(quarantine.platform, [:], isOlder: false)
        feedback.appendElement("Platform", service.kind.installation)
        feedback.appendElement("PnsHandle", service.azureForm(of: quarantine.handle))
      }
      feedback.appendElement("RegistrationId", registration.description)
    }
  }
}
