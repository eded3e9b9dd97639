import ArgumentParser
import FanfareCore
import Roles

/// `fanfare dead-letters`
struct DeadLettersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead-letters",
    abstract: "The records that could not be processed.",
    discussion: """
      They lie in the dead-letter topic with the reason and all that they were. Needs kafka.bootstrapServers. A letter's place in that topic \
      is written partition/offset.
      """,
    subcommands: [List.self, Show.self, Redriving.self])

  /// `fanfare dead-letters list`
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list",
      abstract: "Lists the latest dead letters, oldest first.",
      discussion: """
        One line each: place, when it was set aside, reason, where it came from, size, and what was wrong; never what the record said. \
        With --json one object a line: letter, at, reason, origin, valueSize, isWhole, detail.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filter: LetterFilter

    @Option(help: ArgumentHelp("How many at most, 1 to 100000.", valueName: "count"))
    var limit = 100

    @Flag(help: "Print one JSON object a line instead of text.")
    var json = false

    func validate() throws {
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
      let runtime = try await common.runtime("dead-letters")
      var (latest, count) = ([LetterLine](), 0)
      func trim() {
        latest.sort { ($0.at, $0.place) < ($1.at, $1.place) }
        latest.removeFirst(max(0, latest.count - limit))
      }
      let unreadable = try await DeadLetterBox(runtime.settings.kafka, logger: runtime.logger).read { item in
        guard filter.matches(item.letter) else { return true }
        count += 1
        latest.append(LetterLine(item))
        if latest.count >= 2 * limit { trim() }
        return true
      }
      trim()
      for line in latest {
        if json { try Console.print(json: line) } else { Console.print(line.text) }
      }
      if count > latest.count {
        Console.error("fanfare dead-letters: \(count - latest.count) earlier ones are not listed; see --limit")
      }
      if unreadable > 0 {
        Console.error("fanfare dead-letters: \(unreadable) records of the topic are no dead letters")
      }
    }
  }

  /// `fanfare dead-letters show`
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Prints one dead letter whole, with what the record said.",
      discussion: """
        First the lines that describe it, then an empty one, then the record's value as it was; bytes that are no UTF-8 are shown as U+FFFD. \
        With --json the letter's own record, which keeps such bytes as base64.
        """)

    @OptionGroup var common: CommonOptions

    @Argument(
      help: ArgumentHelp("The letter's place, as `fanfare dead-letters list` prints it.", valueName: "partition/offset")
    )
    var letter: LogPlace

    @Flag(help: "Print the letter's record, a JSON object, as it lies in the topic.")
    var json = false

    func run() async throws {
      let runtime = try await common.runtime("dead-letters")
      var found: DeadLetterBox.Item?
      _ = try await DeadLetterBox(runtime.settings.kafka, logger: runtime.logger).read(only: letter) { item in
        found = item
        return false
      }
      guard let found else { throw ValidationError("there is no dead letter at \(letter)") }
      guard !json else { return Console.print(String(decoding: found.record, as: UTF8.self)) }
      Console.print(LetterLine(found).text)
      if let key = found.letter.key { Console.print("key \(String(decoding: key, as: UTF8.self))") }
      Console.print()
      Console.print(String(decoding: found.letter.value, as: UTF8.self))
    }
  }

  /// `fanfare dead-letters redrive`
  struct Redriving: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "redrive",
      abstract: "Puts the records of dead letters back onto the topics they came from, byte for byte.",
      discussion: """
        For when the reason is gone: a hub is served now, a worker knows the type. The records keep their keys and bytes, and so \
        their ids; the letters stay. What is still wrong comes back as another letter. A letter that was put back before is left \
        alone as long as the topics still have what was put back, seven days unless they are configured otherwise; to learn \
        that, both topics are read whole. What is put back twice within its time to live may be pushed twice. When it fails \
        half-way, the same command goes on with the rest, but with --again begins anew. Letters whose value was too large to be kept whole are refused by \
        name, and then the status is 1. With --json one object: redriven, redrivenBefore, cut, foreign, unreadable.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filter: LetterFilter

    @Option(help: ArgumentHelp("Only the letter at this place.", valueName: "partition/offset"))
    var letter: LogPlace?

    @Flag(help: "Also letters that were put back before.")
    var again = false

    @Flag(help: "Change nothing, and say what would be done.")
    var dryRun = false

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    func run() async throws {
      let runtime = try await common.runtime("dead-letters")
      let redrive = Redrive(kafka: runtime.settings.kafka, isDryRun: dryRun, isRepeated: again, logger: runtime.logger)
      let outcome = try await redrive.run(only: letter, where: filter.matches)
      if json {
        try Console.print(json: outcome)
      } else {
        Console.print("\(outcome.redriven) records \(dryRun ? "would be put back" : "put back")")
        if outcome.redrivenBefore > 0 { Console.print("\(outcome.redrivenBefore) were put back before, see --again") }
        for place in outcome.cut { Console.print("refused \(place): its value was too large to be kept whole") }
        for place in outcome.foreign { Console.print("refused \(place): it came from no topic that workers read") }
        if outcome.unreadable > 0 {
          Console.error("fanfare dead-letters: \(outcome.unreadable) records of the topic are no dead letters")
        }
      }
      let isFound = outcome.redriven + outcome.redrivenBefore + outcome.cut.count + outcome.foreign.count > 0
      if letter != nil, !isFound { Console.error("fanfare dead-letters: no such letter matches") }
      if !outcome.cut.isEmpty || !outcome.foreign.isEmpty || (letter != nil && !isFound) { throw ExitCode.failure }
    }
  }
}
