import GATT
import JSON

/// A property of a profile.
struct PropertyKeys: ConfigurationSection {
  var source: Property.Source?
  var service: BluetoothUUID?
  var characteristic: BluetoothUUID?
  var alternative: BluetoothUUID?
  var instance = 0
  var kind = Property.Kind.state
  var access: Property.Access?
  var writeMode: Property.WriteMode?
  /// The time in s.
  var settle: Double?
  var type: Codec.ScalarType? { didSet { if let type { scalar.type = type } } }
  /// The encoding of values of ``type``, if there is one.
  var scalar = Codec.Scalar(.uint8)
  var flags: [Int: String]?
  var fields: [Codec.Field]?
  var format: AdvertisedFormat?
  var isRepeated = false
  var unit: String?
  var range: ClosedRange<Double>?
  var maxLength: Int?
  var frame: String?
  var chunk: Int?
  /// The interval in s.
  var poll: Double?
  var report: ReportKeys?
  var initial: JSONValue?
  var isBeforeReading = false
  var isAutomatic = false
  var homeAssistant: [EntityKeys] = []

  static let keys: [ConfigurationKey<Self>] =
    [
      ConfigurationKey("source", \.source, .optional(.section)),
      ConfigurationKey("service", \.service, .optional(.uuid)),
      ConfigurationKey("characteristic", \.characteristic, .optional(.uuid)),
      ConfigurationKey("alternative", \.alternative, .optional(.uuid)),
      ConfigurationKey("instance", \.instance, .integer(0...99).leftOut(at: 0)),
      ConfigurationKey("kind", \.kind, .choice.leftOut(at: .state)),
      ConfigurationKey("access", \.access, .optional(.access)),
      ConfigurationKey("write", \.writeMode, .optional(.choice)),
      ConfigurationKey("settle", \.settle, .optional(.number(0.1...60))),
      ConfigurationKey("type", \.type, .optional(.scalarType)),
    ] + Codec.Scalar.keys.map { ConfigurationKey($0, in: \.scalar) } + [
      ConfigurationKey("flags", \.flags, .optional(.words)),
      ConfigurationKey("fields", \.fields, .optional(.list(of: .section))),
      ConfigurationKey("format", \.format, .optional(.choice)),
      ConfigurationKey("repeat", \.isRepeated, .bool.leftOut(at: false)),
      ConfigurationKey("unit", \.unit, .optional(.text(longest: 32))),
      ConfigurationKey("range", \.range, .optional(.numberRange)),
      ConfigurationKey("max_length", \.maxLength, .optional(.integer(1...Codec.longestValue))),
      ConfigurationKey("frame", \.frame, .optional(.delimiter)),
      ConfigurationKey("chunk", \.chunk, .optional(.integer(1...Codec.longestValue))),
      ConfigurationKey("poll", \.poll, .optional(.number(0.1...604_800))),
      ConfigurationKey("report", \.report, .optional(.section)),
      ConfigurationKey("initial", \.initial, .optional(.any)),
      ConfigurationKey("before_reading", \.isBeforeReading, .bool.leftOut(at: false)),
      ConfigurationKey("auto", \.isAutomatic, .bool.leftOut(at: false)),
      ConfigurationKey("home_assistant", \.homeAssistant, .oneOrMore(.section).leftOut(at: [])),
    ]

  /// What belongs into `source`.
  static let elsewhere = Dictionary(
    uniqueKeysWithValues: Property.Source.keys.map {
      ($0.name, "put it into source: {\"source\": {\"\($0.name)\": …}}")
    })

  func problems(at path: ConfigurationPath, given: Set<String>) -> [ConfigurationError] {
    var errors = sourceProblems(at: path, given: given)
    if let type { errors += Codec.Scalar.problems(of: type, at: path, given: given) }
    let scalarKey = Codec.Scalar.firstKey(among: given)
    switch (type, fields) {
    case (_, _) where format != nil: break
    case (nil, nil): errors.append(path.key("type").error("this is missing", hint: "give type or fields"))
    case (.some, .some):
      errors.append(
        path.key("fields").error("type and fields must not be combined", hint: "give one of them"))
    case (nil, .some):
      if let key = flags == nil ? scalarKey : "flags" {
        errors.append(path.key(key).error("a property with fields has no \(key)", hint: "give it to a field"))
      }
    case (.some, nil):
      if flags != nil, let key = scalarKey {
        errors.append(path.key(key).error("a property with flags has no \(key)", hint: "remove it"))
      }
    }
    if writeMode != nil, access?.contains(.write) == false {
      errors.append(path.key("write").error("\(ProfileError.needs(access: "write", key: "write"))"))
    }
    return errors
  }

  /// What a property needs, and cannot have, as its values come from a link or in advertisements.
  private func sourceProblems(at path: ConfigurationPath, given: Set<String>) -> [ConfigurationError] {
    guard source != nil else {
      let missing = ["service", "characteristic", "access"].filter { !given.contains($0) }
      return missing.map { path.key($0).error("this is missing") }
        + (format == nil
          ? [] : [path.key("format").error("only what is advertised has a format: give a source")])
    }
    let ofLinks = [
      "service", "characteristic", "alternative", "access", "write", "settle", "range", "max_length", "frame",
      "chunk", "poll", "initial", "before_reading",
    ]
    let isOneOfSeveral = if case .bthome = format { true } else { false }
    let others =
      (isOneOfSeveral ? [] : ["instance"]) + (format == nil ? [] : ["type", "flags", "fields", "repeat"])
    var errors = ofLinks.filter(given.contains).map {
      path.key($0).error("a property with a source has no \($0)", hint: "remove it")
    }
    errors += others.filter(given.contains).map {
      path.key($0).error("\($0) and this source must not be combined", hint: "remove one of them")
    }
    if format != nil, let key = Codec.Scalar.firstKey(among: given) {
      errors.append(path.key(key).error("a property with a format has no \(key)", hint: "remove it"))
    }
    return errors
  }
}

/// The keys of `source`.
extension Property.Source: ConfigurationSection {
  /// Without data: `radio`, which has no key, until one names the data. ``problems(at:given:)`` refuses it without one.
  package init() { self.init(.radio) }

  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("service_data", \.service, .optional(.uuid)),
    ConfigurationKey("manufacturer_data", \.manufacturer, .optional(.company)),
    ConfigurationKey("prefix", \.prefix, .hexadecimal.leftOut(at: [])),
    ConfigurationKey("length", \.length, .optional(.integer(0...255))),
    ConfigurationKey("at", \.position, .optional(.integer(0...255))),
  ]

  private var service: BluetoothUUID? {
    get { if case .service(let uuid) = data { uuid } else { nil } }
    set { if let newValue { data = .service(newValue) } }
  }

  private var manufacturer: Int? {
    get { if case .manufacturer(let number) = data { number } else { nil } }
    set { if let newValue { data = .manufacturer(newValue) } }
  }

  package func problems(at path: ConfigurationPath, given: Set<String>) -> [ConfigurationError] {
    given.contains("service_data") == given.contains("manufacturer_data")
      ? [path.error("needs either service_data or manufacturer_data")] : []
  }
}

extension Property.Source {
  /// Data of ``length`` that no value of the codec can ever fit into.
  /// - Parameter path: of the length.
  fileprivate func error(with codec: Codec, at path: ConfigurationPath) -> ConfigurationError? {
    guard let length else { return nil }
    let start = position ?? prefix.count
    let rest = length - start
    // With a position, the data may go on behind a value of a fixed width.
    let isLongEnough = position != nil && codec.width.map { $0 <= rest } == true
    guard length < prefix.count || rest < 0 || !isLongEnough && !codec.fits(rest) else { return nil }
    let hint =
      switch codec.width.map({ max(start + $0, prefix.count) }) {
      case let whole? where whole < length: "make it \(whole), or give \"at\": \(start)"
      case let whole?: "it is that of all the data: at least \(whole)"
      case nil: "it is that of all the data"
      }
    func bytes(_ count: Int) -> String { count == 1 ? "1 byte" : "\(count) bytes" }
    let size = codec.width.map { "has \(bytes($0))" } ?? "cannot have \(bytes(max(0, rest)))"
    return path.error("no value fits: it begins at byte \(start), and \(size)", hint: hint)
  }
}

extension ConfigurationRule<Property.Access> {
  fileprivate enum Word: String, CaseIterable {
    case read, notify, write

    var access: Property.Access {
      switch self {
      case .read: .read
      case .notify: .notify
      case .write: .write
      }
    }
  }

  /// A list of what can be done with the characteristic.
  fileprivate static var access: Self {
    ConfigurationRule<[Word]>.list(of: .choice(instead: ["indicate": "\"notify\" includes indications"])).map(
      { Property.Access($0.map(\.access)) },
      back: { access in Word.allCases.filter { access.contains($0.access) } })
  }
}

/// What bounds the values of a state that are published. No `Property.Report`, as options are kept as they were given: a 0, too.
struct ReportKeys: ConfigurationSection, Equatable {
  /// The interval in ms.
  var minInterval: Int?
  var change: Double?

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("min_interval", \.minInterval, .optional(.integer(0...86_400_000))),
    ConfigurationKey("change", \.change, .optional(.number(0...1e12))),
  ]

  var report: Property.Report {
    Property.Report(minInterval: .milliseconds(minInterval ?? 0), change: change ?? 0)
  }

  init() {}

  init(_ report: Property.Report) {
    minInterval = report.minInterval == .zero ? nil : Int(report.minInterval / .milliseconds(1))
    change = report.change == 0 ? nil : report.change
  }
}

// MARK: Between the keys and the property

extension PropertyKeys {
  /// The property; nil, with an error at the wrong key, when there is one.
  func property(
    _ name: String, at path: ConfigurationPath, _ errors: inout [ConfigurationError]
  ) -> Property? {
    let codec: Codec
    do throws(ProfileError) {
      codec = try Codec(description)
    } catch {
      errors.append(path.error(error))
      return nil
    }
    let place = path.key("home_assistant")
    let entities = homeAssistant.enumerated().compactMap { index, keys in
      keys.entity(codec, at: homeAssistant.count == 1 ? place : place.index(index), &errors)
    }
    if let source {
      if let error = source.error(with: codec, at: path.key("source").key("length")) {
        errors.append(error)
        return nil
      }
      return Property(
        name: name, source: source, kind: kind, codec: codec, unit: unit, report: report?.report,
        isAutomatic: isAutomatic, homeAssistant: entities)
    }
    guard let service, let characteristic, let access else { return nil }
    let value = initial.flatMap(codec.value)
    if let initial, value == nil {
      let problem = "expected \(codec.valueDescription), found \(codec.found(initial))"
      errors.append(path.key("initial").error(problem))
      return nil
    }
    return Property(
      name: name, service: service, characteristic: characteristic, alternative: alternative,
      instance: instance, kind: kind, access: access, writeMode: writeMode,
      settle: settle.map { .seconds($0) }, codec: codec, unit: unit, range: range, maxLength: maxLength,
      frame: frame, chunk: chunk, poll: poll.map { .seconds($0) }, report: report?.report,
      initial: value, isBeforeReading: isBeforeReading, isAutomatic: isAutomatic,
      homeAssistant: entities)
  }

  private var description: Codec.Description {
    if let format { return .advertised(format, instance) }
    let flags = flags.flatMap { flags in type.map { Codec.Description.flags($0, flags) } }
    let one = flags ?? fields.map(Codec.Description.record) ?? .scalar(scalar)
    return isRepeated ? .list(of: one) : one
  }

  init(_ property: Property) {
    source = property.source
    if source == nil {
      service = property.service
      characteristic = property.characteristic
      alternative = property.alternative
      instance = property.instance
      access = property.access
    }
    kind = property.kind
    writeMode = property.isWritable ? property.writeMode : nil
    settle = property.settle?.asWritten
    var description = property.codec.description
    if case .list(let element) = description {
      isRepeated = true
      description = element
    }
    switch description {
    case .scalar(let scalar): (type, self.scalar) = (scalar.type, scalar)
    case .flags(let type, let names): (self.type, flags) = (type, names)
    case .record(let fields): self.fields = fields
    case .advertised(let format, let index): (self.format, instance) = (format, index)
    case .list: preconditionFailure("a codec has no list of lists")
    }
    unit = property.unit
    range = property.range
    maxLength = property.maxLength
    frame = property.frame
    chunk = property.chunk
    poll = property.poll?.asWritten
    report = property.report.map { ReportKeys($0) }
    initial = property.initial.map(property.codec.json)
    isBeforeReading = property.isBeforeReading
    isAutomatic = property.isAutomatic
    homeAssistant = property.homeAssistant.map { EntityKeys($0, codec: property.codec) }
  }
}

extension Duration {
  /// The number of seconds of which this duration was made. A quotient of durations is often the number beside it: 4,810 s
  /// would be written as 4810.000000000001.
  fileprivate var asWritten: Double {
    let number = Double(components.seconds) + Double(components.attoseconds) / 1e18
    return [number, number.nextUp, number.nextDown].first { .seconds($0) == self } ?? number
  }
}
