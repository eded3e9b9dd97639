import ArgumentParser
import FanfareCore
import FrontEnd
import Operations
import Roles

/// `fanfare dead-letters`
struct DeadLettersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dead-letters",
    abstract: "Lists, shows and redrives the records that could not be processed.",
    discussion: """
      The dead-letter topic keeps each record with its reason and origin. Needs kafka.bootstrapServers. A letter is \
      named by its place in that topic, partition/offset.
      """,
    subcommands: [List.self, Show.self, Redriving.self])

  /// `fanfare dead-letters list`
  struct List: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "list",
      abstract: "Lists the latest dead letters, oldest first.",
      discussion: """
        One line each: place, time, reason, origin, size and error; never the record's contents. With --json one \
        object per line: letter, at, reason, origin, valueSize, isWhole, detail.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filter: LetterFilter

    @Option(help: ArgumentHelp("The most letters to list, 1 to 100000.", valueName: "count"))
    var limit = 100

    @Flag(help: "Print one JSON object a line instead of text.")
    var json = false

    func validate() throws {
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
      let runtime = try common.runtime("dead-letters")
      var (latest, count) = ([LetterLine](), 0)
      func trim() {
        latest.sort { ($0.at, $0.place) < ($1.at, $1.place) }
        latest.removeFirst(max(0, latest.count - limit))
      }
      let unreadable = try await DeadLetterBox(runtime.settings.kafka, patience: .command, logger: runtime.logger).read
      { item in
        guard filter.matches(item.letter) else { return true }
        count += 1
        latest.append(LetterLine(item))
        if latest.count >= 2 * limit { trim() }
        return true
      }
      trim()
      for line in latest {
        try Console.print(line, isJSON: json)
      }
      if count > latest.count {
        Console.error("fanfare dead-letters: \(count - latest.count) earlier letters are not listed; see --limit")
      }
      if unreadable > 0 {
        Console.error("fanfare dead-letters: \(unreadable) records on the topic are not dead letters")
      }
    }
  }

  /// `fanfare dead-letters show`
  struct Show: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Prints one dead letter with its record.",
      discussion: """
        Prints the lines that describe the letter, an empty line, and the record's value; bytes that are not UTF-8 \
        appear as U+FFFD, and control characters as \\u{…}. With --json it prints the letter's own record, which keeps such bytes as base64.
        """)

    @OptionGroup var common: CommonOptions

    @Argument(
      help: ArgumentHelp("The letter's place, as `fanfare dead-letters list` prints it.", valueName: "partition/offset")
    )
    var letter: LetterArgument

    @Flag(help: "Print the letter's record, a JSON object, as stored in the topic.")
    var json = false

    func run() async throws {
      let runtime = try common.runtime("dead-letters")
      var found: DeadLetterBox.Item?
      _ = try await DeadLetterBox(runtime.settings.kafka, patience: .command, logger: runtime.logger).read(only: [
        letter.place
      ]) { item in
        found = item
        return false
      }
      guard let found else { throw ValidationError("there is no dead letter at \(letter.place)") }
      guard !json else { return Console.print(jsonText: String(decoding: found.record, as: UTF8.self)) }
      Console.print(LetterLine(found).text)
      if let key = found.letter.key { Console.print("key \(Printable.line(String(decoding: key, as: UTF8.self)))") }
      Console.print()
      Console.print(String(decoding: found.letter.value, as: UTF8.self))
    }
  }

  /// `fanfare dead-letters redrive`
  struct Redriving: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "redrive",
      abstract: "Produces the records of dead letters to their original topics again, byte for byte.",
      discussion: """
        Use it when the cause is fixed: a hub is configured, workers know the type, or the segments topic takes larger \
        records. A segment of a broadcast goes to the segments topic. The records keep their keys and \
        bytes, and so their ids; the letters stay. A record that fails again becomes another letter. A letter that was \
        redriven before is skipped while the topics still hold the redriven record, seven days by default; to find out, \
        the topics are read back to the time of the oldest of the letters. A record redriven twice within its time to live may be pushed twice. After a \
        failure the same command continues with the rest, but with --again it starts over. Letters with a truncated \
        value are refused by name, and the status is then 1. With --json one object: redriven, redrivenBefore, cut, \
        foreign, unreadable.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var filter: LetterFilter

    @Option(help: ArgumentHelp("Only the letter at this place.", valueName: "partition/offset"))
    var letter: LetterArgument?

    @Flag(help: "Include letters that were redriven before.")
    var again = false

    @Flag(help: "Change nothing; only report the result that the command would have.")
    var dryRun = false

    @Flag(help: "Print one JSON object instead of text.")
    var json = false

    func run() async throws {
      let runtime = try common.runtime("dead-letters")
      let redrive = Redrive(kafka: runtime.settings.kafka, isDryRun: dryRun, isRepeated: again, logger: runtime.logger)
      let outcome = try await redrive.run(only: letter.map { [$0.place] }, where: filter.matches)
      if !dryRun { runtime.security.record(.deadLettersRedriven, details: ["count": "\(outcome.redriven)"]) }
      if json {
        try Console.print(json: outcome)
      } else {
        Console.print("\(outcome.redriven) records \(dryRun ? "would be redriven" : "redriven")")
        if outcome.redrivenBefore > 0 { Console.print("\(outcome.redrivenBefore) were redriven before, see --again") }
        for place in outcome.cut { Console.print("refused \(place): its value was truncated") }
        for place in outcome.foreign { Console.print("refused \(place): workers do not read its original topic") }
        if outcome.unreadable > 0 {
          Console.error("fanfare dead-letters: \(outcome.unreadable) records on the topic are not dead letters")
        }
      }
      let isFound = outcome.redriven + outcome.redrivenBefore + outcome.cut.count + outcome.foreign.count > 0
      if letter != nil, !isFound { Console.error("fanfare dead-letters: no letter matches") }
      if !outcome.cut.isEmpty || !outcome.foreign.isEmpty || (letter != nil && !isFound) { throw ExitCode.failure }
    }
  }
}

extension TopicScan.Patience {
  fileprivate static let command = Self.reports(command: "dead-letters")
}
