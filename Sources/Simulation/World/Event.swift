import FanfareCore
import RDKafka

extension Trace {
  /// One thing that happens: a sentence of some kind about parts of the world, sends and pushes.
  ///
  /// Lines of text and the page that replays a run are derived from it.
  package struct Event: Sendable {
    /// A kind of sentences; a word in braces stands for a field.
    enum Kind: Int, CaseIterable, Sendable {
      case note, trouble, well, assigned, posted, accepted, carried, deferred, returned, divided, ended, committed
      case pushed, delivered, violation

      var sentence: String {
        switch self {
        case .note: "{text}"
        // An aspect of a part is in a state from now on: as it should not be, or as it should be.
        case .trouble, .well: "{part}: {text} {text}"
        case .assigned: "{text}: {part} +{text} -{text}"
        case .posted: "{send} is posted to {text}"
        case .accepted: "{send} is accepted"
        case .carried: "{send} is in {partition} at {number}"
        case .deferred: "{send} is deferred in {partition} at {number}"
        case .returned: "{send} is back in {partition} at {number}"
        case .divided: "{send} has a segment in {partition} at {number}"
        case .ended: "{send} is {text}"
        case .committed: "{text} commits {partition} {number} {text}"
        case .pushed: "{part} pushes {push} of {send}"
        case .delivered: "{part} takes {push}"
        case .violation: "VIOLATION {text}"
        }
      }

      /// The words in braces.
      var fieldNames: [String] { Self.names[rawValue] }
      private static let names: [[String]] = allCases.map { kind in
        kind.sentence.split(separator: "{", omittingEmptySubsequences: false).dropFirst().map {
          String($0.prefix { $0 != "}" })
        }
      }

      /// The literal parts of each kind's sentence.
      fileprivate static let literals: [[[UInt8]]] = allCases.map { kind in
        kind.sentence.split(separator: "{", omittingEmptySubsequences: false).enumerated().map { place, part in
          Array((place == 0 ? part : part.drop { $0 != "}" }.dropFirst()).utf8)
        }
      }
    }

    enum Field: Hashable, Sendable {
      /// A process, a push service, the registry: by its name.
      case part(String)
      case partition(TopicPartition)
      case send(SendID)
      case push(PushID)
      case number(Int64)
      case text(String)
    }

    let kind: Kind
    let fields: [Field]

    private init(_ kind: Kind, _ fields: Field...) {
      self.kind = kind
      self.fields = fields
      assert(fields.count == Kind.literals[kind.rawValue].count - 1)
    }

    /// Appends the sentence.
    func append(to line: inout [UInt8]) {
      let literals = Kind.literals[kind.rawValue]
      line += literals[0]
      for (place, field) in fields.enumerated() {
        switch field {
        case .part(let text), .text(let text): line += text.utf8
        case .partition(let partition): line += partition.description.utf8
        case .send(let id): id.append(to: &line)
        case .push(let id): id.append(to: &line)
        case .number(let number): line.appendJSON(number)
        }
        line += literals[place + 1]
      }
    }

    // The sentences.

    /// Anything that has no kind of its own.
    package static func note(_ text: String) -> Self { Self(.note, .text(text)) }

    /// An aspect of a part is in a state that it should not be in, until `well`.
    static func trouble(_ part: String, _ aspect: String, _ state: String) -> Self {
      Self(.trouble, .part(part), .text(aspect), .text(state))
    }

    /// An aspect of a part is in a state that it should be in.
    static func well(_ part: String, _ aspect: String, _ state: String) -> Self {
      Self(.well, .part(part), .text(aspect), .text(state))
    }

    /// A group gives partitions of a topic to a member, and takes others away.
    static func assigned(_ topic: String, to member: String, _ added: [Int32], revoked: [Int32]) -> Self {
      Self(.assigned, .text(topic), .part(member), .text("\(added)"), .text("\(revoked)"))
    }

    static func posted(_ send: SendID, to audience: Audience) -> Self {
      // Not by reflection, which takes as long as ten events.
      let name =
        switch audience {
        case .user(let name): "user \(name)"
        case .tag(let tag): "tag \(tag)"
        default: "\(audience)"
        }
      return Self(.posted, .send(send), .text(name))
    }

    /// The caller has been told that the send is accepted.
    static func accepted(_ send: SendID) -> Self { Self(.accepted, .send(send)) }

    /// A record of a partition is a send.
    static func carried(_ partition: TopicPartition, _ offset: Int64, _ send: SendID) -> Self {
      Self(.carried, .send(send), .partition(partition), .number(offset))
    }

    /// A record of a retry topic defers a part of a send.
    static func deferred(_ partition: TopicPartition, _ offset: Int64, _ send: SendID) -> Self {
      Self(.deferred, .send(send), .partition(partition), .number(offset))
    }

    /// A deferred part of a send is back in the topic of sends.
    static func returned(_ partition: TopicPartition, _ offset: Int64, _ send: SendID) -> Self {
      Self(.returned, .send(send), .partition(partition), .number(offset))
    }

    /// A record is a segment of a broadcast.
    static func divided(_ partition: TopicPartition, _ offset: Int64, _ send: SendID) -> Self {
      Self(.divided, .send(send), .partition(partition), .number(offset))
    }

    /// All devices of a send have their results.
    static func ended(_ send: SendID, _ state: String) -> Self { Self(.ended, .send(send), .text(state)) }

    /// A group has taken a position.
    static func committed(_ group: String, _ position: PartitionOffset) -> Self {
      Self(
        .committed, .text(group), .partition(position.partition), .number(position.offset),
        .text(position.metadata ?? ""))
    }

    /// A process hands a push over.
    static func pushed(_ push: PushID, of send: SendID, by process: String) -> Self {
      Self(.pushed, .part(process), .push(push), .send(send))
    }

    /// A push service has taken a push.
    static func delivered(_ push: PushID, by service: String) -> Self {
      Self(.delivered, .part(service), .push(push))
    }

    static func violation(_ text: String) -> Self { Self(.violation, .text(text)) }
  }
}
