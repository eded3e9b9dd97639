import FanfareCore
import Support
import Synchronization
import Testing

@testable import Worker

/// Sends that are rendered from templates.
@Suite struct TemplateDispatchTests {
  private static let content = Content(
    template: TemplateContent(name: "score", version: 2, properties: ["score": "3 to 1"]))

  @Test func devicesWithOneVariantShareARendering() throws {
    let sender = ContentSender(.apns)
    var desk = Desk(senders: [.default: [.apns: sender]])
    let (english, german) = (try Self.variant("Score: "), try Self.variant("Spielstand: "))
    desk.registry[.user("bob")] = [english, german, english, german].enumerated().map { index, variant in
      Self.target("\(index)", variant)
    }
    desk.deliver(desk.send(to: .user("bob"), content: Self.content))
    #expect(desk.queries.map(\.template) == [.hub(name: "score", version: 2)])
    let bodies = desk.pushes.map { String(decoding: $0.rendering.body, as: UTF8.self) }
    #expect(bodies.sorted() == ["Score: 3 to 1", "Score: 3 to 1", "Spielstand: 3 to 1", "Spielstand: 3 to 1"])
    #expect(sender.renderings == 2)
    desk.answerAll()
    #expect(desk.statuses.first?.devices.map(\.outcome) == Array(repeating: .delivered, count: 4))
  }

  /// More variants than an item keeps: each device still gets its own.
  @Test func devicesWithValuesOfTheirOwnGetThem() throws {
    let sender = ContentSender(.apns)
    var desk = Desk(senders: [.default: [.apns: sender]])
    let template = try ContentTemplate(Content(message: Message(body: "{$(name) + ' ' + $(score)}")))
    desk.registry[.user("bob")] = (0..<100).map { number in
      Self.target("\(number)", TemplateVariant(template, attributes: ["name": "device \(number)", "score": "none"]))
    }
    desk.deliver(desk.send(to: .user("bob"), content: Self.content))
    for push in desk.pushes {
      #expect(String(decoding: push.rendering.body, as: UTF8.self) == "device \(push.handle) 3 to 1")
    }
    #expect(desk.pushes.count == 100)
  }

  @Test func platformWithoutTextsIsRejected() throws {
    var desk = Desk(senders: [.default: [.apns: ContentSender(.apns)]])
    let template = try ContentTemplate(Content.of(wns: "<toast/>"))
    desk.registry[.user("bob")] = [Self.target("ab", TemplateVariant(template))]
    desk.deliver(desk.send(to: .user("bob"), content: Self.content))
    #expect(desk.pushes.isEmpty)
    #expect(desk.statuses.first?.devices.map(\.outcome) == [.rejected])
  }

  @Test func devicesWithAVariantThatCannotBeRenderedShareTheOutcome() throws {
    let sender = ContentSender(.apns)
    var desk = Desk(senders: [.default: [.apns: sender]])
    let variant = try Self.variant(String(repeating: "x", count: ContentSender.limit))
    desk.registry[.user("bob")] = (0..<4).map { Self.target("\($0)", variant) }
    desk.deliver(desk.send(to: .user("bob"), content: Self.content))
    #expect(desk.pushes.isEmpty)
    #expect(desk.statuses.first?.devices.map(\.outcome) == Array(repeating: .rejected, count: 4))
    #expect(desk.statuses.first?.devices.map(\.reason) == Array(repeating: "PayloadTooLarge", count: 4))
    #expect(sender.renderings == 1)
  }

  @Test func recheckAsksForTheTemplateAgain() throws {
    var desk = Desk(senders: [.default: [.apns: ContentSender(.apns)]])
    let variant = try Self.variant("Score: ")
    desk.registry[.user("bob")] = [Self.target("ab", variant)]
    desk.deliver(desk.send(to: .user("bob"), content: Self.content))
    desk.answerAll(PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(8)))
    desk.advance(.seconds(120))
    #expect(desk.queries.map(\.template) == Array(repeating: .hub(name: "score", version: 2), count: 2))
    let bodies = desk.pushes.map { String(decoding: $0.rendering.body, as: UTF8.self) }
    #expect(bodies == ["Score: 3 to 1", "Score: 3 to 1"])
  }

  @Test(arguments: [content, Content(template: TemplateContent(name: "score"))])
  func handleWithoutTemplateIsNoTarget(_ content: Content) {
    var desk = Desk(senders: [.default: [.apns: ContentSender(.apns)]])
    desk.deliver(desk.send(to: .device(.apns, handle: "ab"), content: content))
    #expect(desk.pushes.isEmpty)
    #expect(desk.statuses.map(\.state) == [.noTarget])
  }

  /// The device's app removes a template while its push waits. The other template has its own push.
  @Test func deferredPushToAHandleUsesNoOtherTemplateOfTheDevice() throws {
    var desk = Desk(senders: [.default: [.apns: ContentSender(.apns)]], retryDelays: [300])
    let audience = Audience.device(.apns, handle: "ab")
    let other = Self.target("ab", try Self.variant("Second: "), registration: .random())
    desk.registry[audience] = [Self.target("ab", try Self.variant("First: ")), other]
    desk.deliver(desk.send(to: audience, content: Content(template: TemplateContent(properties: ["score": "1"]))))
    #expect(desk.pushes.map { String(decoding: $0.rendering.body, as: UTF8.self) } == ["First: 1", "Second: 1"])
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    desk.answer(desk.pushes[0], PushOutcome(.retryLater, status: 429, retryAfter: .seconds(100)))
    desk.registry[audience] = [other]
    desk.advance(.seconds(111))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.count == 2)
    #expect(desk.statuses.first?.devices.map(\.outcome) == [.rejected, .delivered])
    #expect(desk.statuses.first?.devices.map(\.reason) == ["NoLongerRegistered", ""])
  }

  /// A send to a handle with a hub's template goes to the registration that has the handle when it is repeated.
  @Test func deferredPushToAHandleIsSentToItsNextRegistration() throws {
    var desk = Desk(senders: [.default: [.apns: ContentSender(.apns)]], retryDelays: [300])
    let audience = Audience.device(.apns, handle: "ab")
    desk.registry[audience] = [Self.target("ab", try Self.variant("Score: "))]
    desk.deliver(desk.send(to: audience, content: Self.content))
    desk.answer(desk.pushes[0], PushOutcome(.retryLater, status: 429, retryAfter: .seconds(100)))
    desk.registry[audience] = [Self.target("ab", try Self.variant("Spielstand: "), registration: .random())]
    desk.advance(.seconds(111))
    desk.deliver([desk.retries[0].value])
    #expect(desk.pushes.map { String(decoding: $0.rendering.body, as: UTF8.self) }.last == "Spielstand: 3 to 1")
  }

  private static func variant(_ prefix: String) throws -> TemplateVariant {
    TemplateVariant(try ContentTemplate(Content(message: Message(body: "{'\(prefix)' + $(score)}"))))
  }

  private static func target(
    _ handle: String, _ variant: TemplateVariant, registration: RegistrationID? = nil
  ) -> Target {
    let plain = Desk.target(handle, .apns)
    return Target(
      registration: registration ?? plain.registration, platform: .apns, handle: handle,
      registeredAt: plain.registeredAt, variant: variant)
  }
}

/// A sender whose payload is the text of the message, of less than `limit` bytes.
private final class ContentSender: PushSender {
  static let limit = 100

  let platform: Platform
  let readinessProblem: String? = nil
  private let rendered = Mutex(0)

  init(_ platform: Platform) { self.platform = platform }

  var renderings: Int { rendered.withLock { $0 } }

  func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    guard let body = send.content.message?.body else { throw PushOutcome(.rejected, reason: "PayloadEmpty") }
    rendered.withLock { $0 += 1 }
    guard body.utf8.count < Self.limit else { throw .payloadTooLarge }
    return RenderedPush(headers: [], body: Array(body.utf8))
  }

  func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {}

  func run() async {}
}
