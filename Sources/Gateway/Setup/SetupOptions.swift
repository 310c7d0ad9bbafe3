import Configuration
import EventLoop
import GATT
import Glibc
import JSON

/// What the command line and the present file contribute to the dialogue.
extension Setup {
  func dialogue(
    _ present: PresentConfiguration, backup: String
  ) throws(CommandFailure) -> SetupDialogue {
    var given: [SetupTopic: String] = [:]
    given[.host] = broker
    given[.port] = port
    given[.username] = username
    given[.caFile] = caFile.map(Self.absolute)
    if isEncrypted { given[.tls] = "y" }
    var named: [SetupDevice] = []
    for (index, text) in devices.enumerated() {
      let (device, name, area) = try Self.device(text, present)
      guard !named.contains(where: { $0.address == device.address }) else {
        throw CommandFailure(.usage, "--device: \(device.address) is given twice")
      }
      named.append(device)
      given[.name(index)] = name
      given[.area(index)] = area
    }
    let access = isOfService(present) ? ServiceAccess() : nil
    let isChosen = usesAll || !devices.isEmpty
    if isChosen { given[.later] = usesAll || present.hasEveryMicrobit ? "y" : "n" }
    return SetupDialogue(
      present, backup: backup, program: ProgramArguments.all.first ?? "microbit-gateway", given: given,
      devices: isChosen ? named : nil, password: try password(present),
      triesBroker: triesBroker, isUnattended: isUnattended,
      isReadable: { file in access.map { $0.obstacle(to: file) == nil } ?? true })
  }

  /// `ADDRESS=NAME,AREA`; what is left out stays as it is.
  private static func device(
    _ text: String, _ present: PresentConfiguration
  ) throws(CommandFailure) -> (SetupDevice, name: String, area: String) {
    let parts = text.split(separator: "=", maxSplits: 1)
    guard let first = parts.first,
      let address = BluetoothAddress(first) ?? BluetoothAddress(compact: first.lowercased())
    else {
      throw CommandFailure(
        .usage, "--device \(text): must begin with an address such as C5:A1:B2:C3:D4:E5 (see init or scan)")
    }
    let names = parts.count == 2 ? parts[1].split(separator: ",", maxSplits: 1) : []
    let entry = present.entry(of: address)
    let device = SetupDevice(
      address: address, bluetoothName: nil, name: entry?["name"]?.text, id: entry?["id"]?.text,
      area: entry?["area"]?.text)
    return (device, names.first.map(String.init) ?? "", names.count == 2 ? String(names[1]) : "")
  }

  private func isOfService(_ present: PresentConfiguration) -> Bool {
    present.path == SetupFiles.serviceConfiguration && geteuid() == 0
  }

  private func password(_ present: PresentConfiguration) throws(CommandFailure) -> SetupBroker.Password? {
    guard let passwordFile else { return nil }
    guard username != nil || present.configuration.mqtt.username != nil else {
      throw CommandFailure(.usage, "--password-file needs --username")
    }
    let path = Self.absolute(passwordFile)
    do throws(FileProblem) {
      let password = try ConfigurationFile.password(in: path)
      // The service cannot read what belongs to root or lies in /home: it gets a copy.
      return isOfService(present) ? .typed(password) : .file(path, password)
    } catch {
      throw CommandFailure(.usage, "--password-file \(passwordFile): \(error)")
    }
  }

  /// As config.json may be in another folder.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return "\(String(cString: folder))/\(path)"
  }
}

extension PresentConfiguration {
  /// - Parameter path: a link is followed, so that the file is replaced and not the link.
  init(readingFrom path: String) {
    let real = realpath(path, nil)
    defer { free(real) }
    self.init(path: real.map { String(cString: $0) } ?? path)
    let bytes: [UInt8]
    do throws(FileProblem) {
      bytes = try FileProblem.read(self.path, limit: 1 << 20)
    } catch {
      if !error.isMissing { problem = "\(self.path): \(error)" }
      return
    }
    do throws(ConfigurationErrors) {
      (configuration, document) = try ConfigurationFile.parse(bytes, in: folder)
      if let file = configuration.mqtt.passwordFile?.resolved(in: folder) {
        password = try? ConfigurationFile.password(in: file)
      }
    } catch {
      let file = error.file ?? self.path
      problem = error.errors.map { $0.description(in: file) }.joined(separator: "\n")
    }
  }
}

extension SetupFiles {
  /// `config.json.bak-20260102-030405`.
  static func backupName(of path: String) -> String {
    var (now, parts) = (time(nil), tm())
    localtime_r(&now, &parts)
    var stamp = [CChar](repeating: 0, count: 32)
    let length = strftime(&stamp, stamp.count, "%Y%m%d-%H%M%S", &parts)
    let name = path.split(separator: "/").last ?? "config.json"
    return "\(name).bak-\(String(decoding: stamp[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self))"
  }

  /// Whether it is the configuration that the service uses.
  var isOfService: Bool { path == serviceConfiguration && geteuid() == 0 }
}
