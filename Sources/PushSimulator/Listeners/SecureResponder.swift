import HTTPTypes
import Hummingbird
import NIOCore

/// The HTTP/1.1 services over TLS: both vendors' token endpoints, recognised by their paths, and WNS for all other
/// paths.
struct SecureResponder: HTTPResponder {
  typealias Context = ChannelContext

  let google: GoogleToken
  let microsoft: MicrosoftToken
  let wns: WNSService

  /// The most bytes of a request's body.
  static let maximumBodyBytes = 64 * 1024
  /// How long an unanswered request is kept.
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
      // The HTTP/1.1 counterpart of GOAWAY.
      if reaction.goAway { headers[.connection] = "close" }
      return Response(
        status: .init(code: answer.status), headers: headers,
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)))
    case .silence:
      try await Task.sleep(for: Self.patience)
      fallthrough
    case .dropConnection, .reset:
      channel.close(promise: nil)
      // The channel is closed, so nobody reads this.
      return Response(status: .internalServerError)
    }
  }

  /// The form of a token request; empty if the content type is another.
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

/// A request context with the connection, for faults that break it.
struct ChannelContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
  }
}
