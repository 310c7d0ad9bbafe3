import JSON

/// Which micro:bits send by radio, how often, and what goes wrong; ``help`` describes its text.
package struct RadioScenario: Sendable, Hashable {
  /// What the receiver's program prints of a packet.
  package enum Form: String, Sendable, CaseIterable {
    /// `{"t":325,"s":-1142702066,"n":"temp","v":21}`: MakeCode's `radio.writeReceivedPacketToSerial`.
    case json
    /// `vopez,temp,21`: a line that the sender has made.
    case letters
    /// `temp:21`: MakeCode's `serial.writeValue`, without the sender.
    case values
  }

  package var form = Form.letters
  package var senders = 30
  /// The mean time between two values of a sender, in ms; it varies by half of it.
  package var interval = 1000
  /// The percentage of packets that are lost, beside those that collide.
  package var loss = 0
  /// The percentage of values that are followed by a press of button A.
  package var presses = 1
  /// Whether the receiver's program forwards what is written to it, and the senders send the values back.
  package var forwards = true

  /// 30 micro:bits that send their temperature about each second.
  package static let classByRadio = RadioScenario()

  private init() {}

  package init(_ text: String) throws(PeripheralError) {
    for part in text.split(separator: ",") where part != "class_by_radio" {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let (key, value) = (pair[0], pair.count > 1 ? String(pair[1]) : "")
      func number(_ range: ClosedRange<Int>) throws(PeripheralError) -> Int {
        guard let number = Int(value), range.contains(number) else {
          throw PeripheralError("\(key): \(Excerpt(value)) is not \(range.lowerBound) to \(range.upperBound)")
        }
        return number
      }
      switch key {
      case "form":
        guard let known = Form(rawValue: value) else {
          throw PeripheralError("form: \(Excerpt(value)) is not json, letters or values")
        }
        form = known
      case "senders": senders = try number(1...1000)
      case "every": interval = try number(20...86_400_000)
      case "loss": loss = try number(0...100)
      case "presses": presses = try number(0...100)
      case "forwards": forwards = try number(0...1) == 1
      default: throw PeripheralError("\(Excerpt(String(part))) is not class_by_radio, nor KEY=VALUE")
      }
    }
  }

  /// The text for the help of a program.
  package static let help = """
    SCENARIO is class_by_radio, with changes after commas, such as class_by_radio,form=json,loss=5:
      senders=N   number of micro:bits (30)
      form=FORM   json: {"t":325,"s":-1142702066,"n":"temp","v":21}; values: temp:21; letters: vopez,temp,21 (letters)
      every=MS    mean time between two values of a sender; it varies by half of it (1000)
      loss=P      percentage of lost packets, beside those that collide or come while the receiver is busy (0)
      presses=P   percentage of values that are followed by a press of button A (1)
      forwards=N  0: the receiver's program sends nothing; 1: it does, and the micro:bits send values back (1)
    """
}
