#!/bin/bash
# Starts the gateway with the user's /config/config.json and, unless that names a broker, with the Supervisor's.
set -euo pipefail

config=/config/config.json
supervisor=${SUPERVISOR:-http://supervisor}
# The page is for the Supervisor's proxy alone.
page=${PAGE:-"0.0.0.0 8099 172.30.32.2"}
broker=null

main() {
  # The first process of a container is ended only by signals that it handles.
  trap 'exit 0' TERM
  [ -e $config ] || make_config
  check
  umask 077
  jq --exit-status '.mqtt.host // .mqtt.hosts' $config >/dev/null || find_broker
  complete_config
  unset SUPERVISOR_TOKEN HASSIO_TOKEN
  exec microbit-gateway run --config /data/config.json
}

# As the package has it, but without a broker.
make_config() {
  local text
  text=$(jq 'del(."$schema", .mqtt.host, .mqtt.port)' /usr/share/microbit-gateway/config.json)
  printf '%s\n' "$text" >$config
}

check() {
  local status=0
  microbit-gateway check --config $config >/dev/null || status=$?
  [ $status = 0 ] || {
    echo "$config is the file config.json in the folder of this app below /addon_configs: correct it, and start the app."
    exit $status
  }
}

# Sets `broker`, and writes the password to a file of its own.
find_broker() {
  local answer is_told=
  until
    answer=$(printf 'Authorization: Bearer %s\n' "${SUPERVISOR_TOKEN:-}" |
      curl --silent --show-error --max-time 10 --header @- "$supervisor/services/mqtt") || true
    broker=$(jq --exit-status '.data | select(.host) | del(.password)' <<<"$answer" 2>/dev/null)
  do
    [ -n "$is_told" ] ||
      echo "Home Assistant has no MQTT broker: install and start the app \"Mosquitto broker\"," \
        "or name a broker in config.json (mqtt.host). This is tried again every 30 s."
    is_told=yes
    sleep 30 &
    wait $!
  done
  jq --raw-output '.data.password // ""' <<<"$answer" >/data/mqtt-password
  jq --raw-output '"The broker is \(.host):\(.port)."' <<<"$broker"
}

# Writes /data/config.json. Relative paths begin at the folder of the user's.
complete_config() {
  jq --argjson broker "$broker" --arg page "$page" '
    def absolute: if startswith("/") then . else "/config/" + . end;
    def login: if .username then {username, password_file: "/data/mqtt-password"} else {} end;
    (.profiles_directory, .mqtt.password_file, .mqtt.tls.ca_file?, .mqtt.tls.cert_file?, .mqtt.tls.key_file?,
      .devices[]?.key_file? | strings) |= absolute
    | .http = ($page / " " | {enabled: true, address: .[0], port: (.[1] | tonumber), proxy: .[2]})
    | if $broker then
        .mqtt |= del(.username, .password_file, .tls) + ($broker | {host, port} + login)
          + if $broker.ssl then {tls: (.tls // {})} else {} end
      else . end' $config >/data/config.json
}

main
