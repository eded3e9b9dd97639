import FanfareCore

/// An error answer of FCM in the form of all Google APIs (google.rpc.Status with details).
struct FCMError: Error, Sendable {
  /// The HTTP status.
  let status: Int
  /// The name of the canonical code.
  let name: String
  /// FCM's own code in the details, if the answer has one.
  let code: String?
  let message: String
  /// The invalid field, dotted.
  var field: String?

  /// An invalid request.
  static func invalidArgument(field: String?, _ message: String) -> FCMError {
    FCMError(status: 400, name: "INVALID_ARGUMENT", code: "INVALID_ARGUMENT", message: message, field: field)
  }

  /// A message that is too big; its answer has no details.
  static let messageTooBig = FCMError(
    status: 400, name: "INVALID_ARGUMENT", code: nil, message: "Android message is too big")
  /// A missing or invalid bearer token.
  static let unauthenticated = FCMError(
    status: 401, name: "UNAUTHENTICATED", code: nil,
    message:
      "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
      + "authentication credential.")
  /// A request for another project.
  static let permissionDenied = FCMError(
    status: 403, name: "PERMISSION_DENIED", code: nil,
    message: "Permission 'cloudmessaging.messages.create' denied on the project (or it may not exist).")
  /// Another path.
  static let notFound = FCMError(status: 404, name: "NOT_FOUND", code: nil, message: "Method not found.")

  var body: [UInt8] {
    JSONWriter.object { json in
      json.object("error") { json in
        json.member("code", status)
        json.member("message", message)
        json.member("status", name)
        json.member("details", ifPresent: details.isEmpty ? nil : details)
      }
    }
  }

  private enum Detail: JSONWritable {
    case badRequest(field: String, description: String)
    case fcmError(code: String)

    func write(to json: inout JSONWriter) {
      json.object { json in
        switch self {
        case .badRequest(let field, let description):
          json.member("@type", "type.googleapis.com/google.rpc.BadRequest")
          json.array("fieldViolations", [field]) { json, field in
            json.object { json in
              json.member("field", field)
              json.member("description", description)
            }
          }
        case .fcmError(let code):
          json.member("@type", "type.googleapis.com/google.firebase.fcm.v1.FcmError")
          json.member("errorCode", code)
        }
      }
    }
  }

  private var details: [Detail] {
    var details: [Detail] = []
    if let field, !field.isEmpty { details.append(.badRequest(field: field, description: message)) }
    if let code { details.append(.fcmError(code: code)) }
    return details
  }
}

extension FCMError {
  /// The usual error of a status, with the code of a fault.
  init(status: Int, code: String?) {
    let (name, usual, message) =
      switch status {
      case 400: ("INVALID_ARGUMENT", "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token")
      case 401: ("UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", "Auth error from APNS or Web Push Service")
      case 403: ("PERMISSION_DENIED", "SENDER_ID_MISMATCH", "SenderId mismatch")
      case 404: ("NOT_FOUND", "UNREGISTERED", "Requested entity was not found.")
      case 429: ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "Quota exceeded for quota metric 'FCM v1 send requests'.")
      case 503: ("UNAVAILABLE", "UNAVAILABLE", "The service is currently unavailable.")
      default: ("INTERNAL", "INTERNAL", "Internal error encountered.")
      }
    self.init(
      status: status, name: name, code: code ?? usual, message: message, field: status == 400 ? "message.token" : nil)
  }
}
