import HTTPTypes

/// Why one request, or one line of a batch, is not done. Its detail is for people, names the field or thing that is
/// meant, and contains nothing of its value: it is sent to the caller and may be logged.
struct Refusal: Error, Hashable, CustomStringConvertible {
  let code: ProblemCode
  let detail: String
  /// The methods that the path does have, for `.methodNotAllowed`.
  var allowedMethods: [HTTPRequest.Method] = []

  /// Seconds after which the same request may succeed, where that is known better than by its code.
  var retryAfter: Int?

  init(_ code: ProblemCode, _ detail: String) {
    self.code = code
    self.detail = detail
  }

  var description: String { "\(code.rawValue): \(detail)" }
}
