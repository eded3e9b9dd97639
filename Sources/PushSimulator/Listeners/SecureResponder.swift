import HTTPTypes
import Hummingbird
import NIOCore

/// Everything that is served in HTTP/1.1 over TLS: both vendors' token endpoints, told from each other by their paths,
/// and WNS, which has all other paths.
struct SecureResponder: HTTPResponder {
  typealias Context = ChannelContext

  let google: GoogleToken
  let microsoft: MicrosoftToken
  let wns: WNSService

  /// Bytes of a request's body at most.
  static let maximumBodyBytes = 64 * 1024
  /// How long a request that is never answered is kept.
  private static let patience: Duration = .seconds(600)

  func respond(to request: Request, context: ChannelContext) async throws -> Response {
    let body: [UInt8]
    do {
      body = Array(buffer: try await request.body.collect(upTo: Self.maximumBodyBytes))
    } catch is NIOTooManyBytesError {
      return Response(status: .contentTooLarge, headers: [.connection: "close"])
    }
    let target = request.head.path ?? "/"
    let path = String(target.prefix { $0 != "?" })
    let reaction: Reaction
    switch (request.method, path) {
    case (.post, "/token"): reaction = google.react(to: Self.form(request, body: body))
    case (.post, "/accesstoken.srf"): reaction = microsoft.reactLive(to: Self.form(request, body: body))
    case (.post, _):
      if let tenant = MicrosoftToken.tenant(inPath: path) {
        reaction = microsoft.reactEntra(to: Self.form(request, body: body), tenant: tenant)
      } else {
        reaction = wns.react(to: Self.notification(request, target: target, body: body))
      }
    default: reaction = wns.react(to: Self.notification(request, target: target, body: body))
    }
    return try await perform(reaction, on: context.channel)
  }

  private func perform(_ reaction: Reaction, on channel: any Channel) async throws -> Response {
    if reaction.delay > .zero { try await Task.sleep(for: reaction.delay) }
    switch reaction.ending {
    case .answer(let answer):
      var headers = HTTPFields()
      for field in answer.headers {
        if let name = HTTPField.Name(field.name) { headers.append(HTTPField(name: name, value: field.value)) }
      }
      // HTTP/1.1's way to send a client away.
      if reaction.goAway { headers[.connection] = "close" }
      return Response(
        status: .init(code: answer.status), headers: headers,
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
    case .silence:
      try await Task.sleep(for: Self.patience)
      fallthrough
    case .dropConnection, .reset:
      channel.close(promise: nil)
      // Nobody reads this any more.
      return Response(status: .internalServerError)
    }
  }

  /// The form of a token request. A body that is not said to be one has no fields.
  private static func form(_ request: Request, body: [UInt8]) -> FormBody {
    let mediaType = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    return FormBody(mediaType == "application/x-www-form-urlencoded" ? body : [])
  }

  private static func notification(_ request: Request, target: String, body: [UInt8]) -> WNSRequest {
    WNSRequest(
      method: request.method.rawValue, target: target,
      headers: request.headers.map { HeaderField($0.name.rawName, $0.value) }, body: body)
  }
}
