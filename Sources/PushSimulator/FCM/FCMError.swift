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

  private init(status: Int, name: String, code: String?, message: String, field: String? = nil) {
    self.status = status
    self.name = name
    self.code = code
    self.message = message
    self.field = field
  }

  var body: [UInt8] {
    var body: [UInt8] = []
    body.append(literal: #"{"error":{"code":"#)
    body.appendJSON(status)
    body.append(literal: #","message":"#)
    body.appendJSON(message)
    body.append(literal: #","status":"#)
    body.appendJSON(name)
    var details: [[UInt8]] = []
    if let field, !field.isEmpty {
      var detail: [UInt8] = []
      detail.append(literal: #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"#)
      detail.appendJSON(field)
      detail.append(literal: #","description":"#)
      detail.appendJSON(message)
      detail.append(literal: "}]}")
      details.append(detail)
    }
    if let code {
      var detail: [UInt8] = []
      detail.append(literal: #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"#)
      detail.appendJSON(code)
      detail.append(literal: "}")
      details.append(detail)
    }
    if !details.isEmpty {
      body.append(literal: #","details":["#)
      body.append(contentsOf: details.joined(separator: [UInt8(ascii: ",")]))
      body.append(literal: "]")
    }
    body.append(literal: "}}")
    return body
  }
}
