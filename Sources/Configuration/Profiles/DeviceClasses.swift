/// The device classes that Home Assistant knows, and the units of those of numbers: `sensor/const.py`,
/// `binary_sensor/__init__.py` and others in homeassistant/components, as of 2026. Newer versions know more.
package enum DeviceClasses {
  private static let percent = ["%"]
  private static let mass = ["µg/m³"]
  private static let temperatures = ["°C", "°F", "K"]
  private static let pressures = [
    "Pa", "mPa", "hPa", "kPa", "bar", "mbar", "cbar", "mmHg", "inHg", "inH₂O", "psi", "atm",
  ]
  private static let energies = [
    "Wh", "mWh", "kWh", "MWh", "GWh", "TWh", "J", "kJ", "MJ", "GJ", "cal", "kcal", "Mcal", "Gcal",
    "thm",
  ]
  private static let volumes = ["L", "mL", "m³", "ft³", "CCF", "MCF", "gal", "fl. oz."]
  private static let speeds = [
    "m/s", "mm/s", "m/min", "km/h", "mph", "kn", "ft/s", "in/s", "Beaufort",
  ]
  private static let rains = ["mm/h", "mm/d", "in/h", "in/d"]

  /// The units of sensors and numbers; "" stands for none, an empty list for any.
  static let units: [String: [String]] = [
    "absolute_humidity": ["g/m³", "mg/m³"],
    "apparent_power": ["VA", "mVA", "kVA"],
    "aqi": [""],
    "area": ["m²", "cm²", "km²", "mm²", "in²", "ft²", "yd²", "mi²", "ac", "ha"],
    "atmospheric_pressure": pressures,
    "battery": percent,
    "blood_glucose_concentration": ["mg/dL", "mmol/L"],
    "carbon_dioxide": ["ppm"],
    "carbon_monoxide": ["ppm", "ppb", "mg/m³", "µg/m³"],
    "conductivity": ["S/cm", "mS/cm", "µS/cm"],
    "current": ["A", "mA", "µA"],
    "data_rate": [
      "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "B/s", "kB/s", "MB/s", "GB/s", "KiB/s", "MiB/s", "GiB/s",
    ],
    "data_size": [
      "bit", "kbit", "Mbit", "Gbit", "B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "KiB", "MiB", "GiB",
      "TiB", "PiB", "EiB", "ZiB", "YiB",
    ],
    "distance": ["km", "m", "cm", "mm", "mi", "nmi", "yd", "ft", "in"],
    "duration": ["d", "h", "min", "s", "ms", "µs"],
    "energy": energies,
    "energy_distance": ["kWh/100km", "Wh/km", "mi/kWh", "km/kWh"],
    "energy_storage": energies,
    "frequency": ["mHz", "Hz", "kHz", "MHz", "GHz"],
    "gas": ["m³", "L", "ft³", "CCF", "MCF"],
    "humidity": percent,
    "illuminance": ["lx"],
    "irradiance": ["W/m²", "BTU/(h⋅ft²)"],
    "moisture": percent,
    "monetary": [],
    "nitrogen_dioxide": ["ppb", "ppm", "µg/m³"],
    "nitrogen_monoxide": ["ppb", "µg/m³"],
    "nitrous_oxide": mass,
    "ozone": ["ppb", "ppm", "µg/m³"],
    "ph": [""],
    "pm1": mass,
    "pm10": mass,
    "pm25": mass,
    "pm4": mass,
    "power": ["W", "mW", "kW", "MW", "GW", "TW"],
    "power_factor": ["%", ""],
    "precipitation": ["mm", "cm", "in"],
    "precipitation_intensity": rains,
    "pressure": pressures,
    "radon": ["Bq/m³", "pCi/L"],
    "reactive_energy": ["varh", "kvarh"],
    "reactive_power": ["var", "mvar", "kvar"],
    "signal_strength": ["dBm", "dB"],
    "sound_pressure": ["dB", "dBA"],
    "speed": speeds + rains,
    "sulphur_dioxide": ["ppb", "µg/m³"],
    "temperature": temperatures,
    "temperature_delta": temperatures,
    "volatile_organic_compounds": ["µg/m³", "mg/m³"],
    "volatile_organic_compounds_parts": ["ppb", "ppm"],
    "voltage": ["V", "mV", "µV", "kV", "MV"],
    "volume": volumes,
    "volume_flow_rate": [
      "m³/h", "m³/min", "m³/s", "L/h", "L/min", "L/s", "mL/s", "ft³/min", "gal/d", "gal/h", "gal/min",
    ],
    "volume_storage": volumes,
    "water": ["m³", "L", "ft³", "CCF", "MCF", "gal"],
    "weight": ["kg", "g", "mg", "µg", "lb", "oz", "st"],
    "wind_direction": ["°"],
    "wind_speed": speeds,
  ]

  /// The classes of sensors that are texts.
  static let texts: Set = ["date", "enum", "timestamp", "uptime"]

  /// The classes whose numbers are totals: they have no mean.
  static let totals: Set = ["energy", "gas", "reactive_energy", "volume", "water"]
  /// The classes whose numbers are measurements or totals; those of others are measurements alone.
  static let anyStatistics: Set = ["area", "data_size", "distance", "duration", "precipitation", "weight"]
  /// The classes of which Home Assistant keeps other statistics alone, which a profile cannot name.
  static let withoutStatistics: Set = ["monetary", "wind_direction"]

  static let binarySensors = [
    "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door", "garage_door", "gas",
    "glass_break", "heat", "light", "lock", "moisture", "motion", "moving", "occupancy", "opening", "plug",
    "power",
    "presence", "problem", "running", "safety", "smoke", "sound", "tamper", "update", "vibration", "window",
  ]
  static let switches = ["outlet", "switch"]
  static let events = ["button", "doorbell", "motion"]
}
