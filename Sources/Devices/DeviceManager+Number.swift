import Configuration
import EventLoop
import GATT
import JSON
import Log

/// How the micro:bits of a class are numbered.
package struct Numbering: Sendable, Equatable {
  /// What stands before each number; may be empty.
  package var prefix: String
  package var next: Int
  /// How long it goes on after the last number, in seconds.
  var patience: Int
  /// Who has got a number, and which one, the newest last.
  var given: [Given] = []
  /// Why the device that was pressed last got no number; nil: it got one.
  package var problem: String?

  struct Given: Sendable, Equatable {
    let address: BluetoothAddress
    let number: Int
  }

  func name(of number: Int) -> String { prefix.isEmpty ? "\(number)" : "\(prefix) \(number)" }
  func number(of address: BluetoothAddress) -> Int? { given.first { $0.address == address }?.number }
}

/// Numbering the micro:bits of a class: whoever presses button A gets the next number. As the gateway gives them, none is given
/// twice, however many pages show it.
extension DeviceManager {
  /// The maximum time from one number to the next, in seconds.
  package nonisolated static let longestNumbering = 600

  /// Connected micro:bits show that they wait for a press of button A, and keep their links until they have got a number. Then
  /// they give up their links to those that have none yet.
  ///
  /// - Parameters:
  ///   - seconds: from now on, and from each number; 0: no longer.
  ///   - prefix: nil: as it is; none at first.
  ///   - next: the next number; nil: as it is; 1 at first.
  package func permitNumbering(seconds: Int, prefix: String? = nil, next: Int? = nil) {
    let isNew = numbering == nil
    var new = numbering ?? Numbering(prefix: "", next: 1, patience: seconds)
    (new.prefix, new.next, new.patience) = (prefix ?? new.prefix, next ?? new.next, seconds)
    new.problem = nil
    numbering = seconds > 0 ? new : nil
    awaitNext()
    if isNew == (seconds > 0) {
      context.pressed = seconds > 0 ? { [weak self] in self?.pressed($0) } : nil
      context.scheduler.setNumbering(seconds > 0)
    }
    engineChanged()
  }

  private func awaitNext() {
    numberTimer.set(numbering.map { .now + .seconds($0.patience) }) { [weak self] in
      self?.permitNumbering(seconds: 0)
    }
  }

  /// Gives a device the next number, as if its button were pressed.
  package func number(_ id: DeviceID) throws(RequestError) {
    let device = try requireDevice(id)
    guard numbering != nil else { throw RequestError(.failed, "nothing is numbered now") }
    try give(to: device)
  }

  /// - Parameter address: of a device whose button was pressed.
  private func pressed(_ address: BluetoothAddress) {
    guard numbering != nil, let device = registry.byAddress[address] else { return }
    do throws(RequestError) {
      try give(to: device)
    } catch {
      numbering?.problem = error.reason
      log.warning("it gets no number: \(error.reason)", device.fields)
      engineChanged()
    }
  }

  private func give(to device: Device) throws(RequestError) {
    guard let numbering else { return }
    if let number = numbering.number(of: device.address) { return show(number, on: device) }
    try checkOwner(of: device)
    let (number, holders) = nextNumber(for: device, numbering)
    for holder in holders { try takeName(of: holder) }
    try rename(device.id, name: numbering.name(of: number))
    self.numbering?.given.append(Numbering.Given(address: device.address, number: number))
    self.numbering?.next = number + 1
    self.numbering?.problem = nil
    awaitNext()
    guard let device = registry.byAddress[device.address] else { return }
    context.scheduler.wasNumbered(device)
    show(number, on: device)
    engineChanged()
  }

  /// The next number, and the devices that have its name or id, from another lesson. A number is left out if one keeps these: it
  /// was numbered in this lesson, or another gateway owns it, or has a device of its own with this id.
  private func nextNumber(for device: Device, _ numbering: Numbering) -> (Int, [Device]) {
    var number = numbering.next
    while true {
      let name = numbering.name(of: number), id = TopicWord.similar(to: name)
      let holders = registry.all.filter {
        $0 !== device && ($0.settings.name == name || $0.id.description == id)
      }
      let isUsedElsewhere = id.flatMap { try? DeviceID($0) }.map { id in
        frontEnds.contains { $0.isUsedElsewhere(id) }
      }
      let isFree = holders.allSatisfy { numbering.number(of: $0.address) == nil && !$0.owner.isOther }
      if isFree, isUsedElsewhere != true { return (number, holders) }
      number += 1
    }
  }

  /// The device goes by its five letters from now on, or by its address if another one has these.
  private func takeName(of device: Device) throws(RequestError) {
    let letters = freeID(ofLetters: device.description.letters, for: device.address)
    try rename(
      device.id, name: letters?.description ?? device.address.description,
      to: letters ?? DeviceID(device.address))
  }

  /// The number alone if the LEDs can show a text, else what shows which one it is; first what they showed before the sign, as
  /// a picture ends a text.
  private func show(_ number: Int, on device: Device) {
    device.releaseLEDs { [self] _ in
      let text = Command(device.id, "led_text", .string("\(number)"), ttl: 60)
      do throws(RequestError) {
        try execute(text) { _ in }
        // If the link was lost before they showed that, it would end the text on the next one.
        store.change(device.address) { $0.leds = nil }
      } catch {
        // Without LEDs nothing can be shown.
        loop.task { [self] in _ = try? await identify(device.id) }
      }
    }
  }

  /// What a front end shows of the numbering; nil: there is none.
  package var numberingJSON: JSONValue? {
    guard let numbering else { return nil }
    let waiting = registry.all.filter { $0.isLive && context.scheduler.awaitsPress($0) }
    return [
      "prefix": .string(numbering.prefix), "next": .integer(numbering.next),
      "given": .array(
        numbering.given.compactMap { registry.byAddress[$0.address]?.id.description }.map(JSONValue.string)),
      "waiting": .integer(waiting.count),
      "without_leds": .integer(waiting.count { $0.session.linkSession?.services.resolution?.leds == nil }),
      "problem": numbering.problem.map(JSONValue.string),
    ]
  }
}

extension Device {
  /// A press of button A counts while micro:bits are numbered, over a link alone.
  func noteForNumbering(_ value: Value, of property: Int) {
    guard let pressed = context.pressed, isLive else { return }
    let property = channels[property].property
    guard property.name == Property.microbitButtonA.name,
      property.codec.json(value) == .string("press_start")
    else { return }
    // The reading is passed on first.
    loop.timer(after: .zero) { [address] in pressed(address) }
  }
}
