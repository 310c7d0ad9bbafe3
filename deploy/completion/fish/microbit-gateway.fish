# fish completion for microbit-gateway

set -l commands init run doctor check scan devices add rename remove permit-join inspect read write watch pair unpair identify bonds profiles profile forget version
set -l device inspect read write watch pair unpair identify
set -l running devices add rename remove permit-join bonds
set -l seen __fish_seen_subcommand_from

complete -c microbit-gateway -f
complete -c microbit-gateway -n "not $seen $commands" -a run -d 'run until stopped'
complete -c microbit-gateway -n "not $seen $commands" -a init -d 'set up the configuration'
complete -c microbit-gateway -n "not $seen $commands" -a doctor -d 'find what is wrong, and what to do about it'
complete -c microbit-gateway -n "not $seen $commands" -a check -d 'check the configuration'
complete -c microbit-gateway -n "not $seen $commands" -a scan -d 'list the Bluetooth devices in range'
complete -c microbit-gateway -n "not $seen $commands" -a devices -d 'list the devices'
complete -c microbit-gateway -n "not $seen $commands" -a add -d 'add a device'
complete -c microbit-gateway -n "not $seen $commands" -a rename -d 'give a device another name'
complete -c microbit-gateway -n "not $seen $commands" -a remove -d 'remove a device'
complete -c microbit-gateway -n "not $seen $commands" -a permit-join -d 'add the micro:bits that come into range'
complete -c microbit-gateway -n "not $seen $commands" -a inspect -d 'show the services of a peripheral'
complete -c microbit-gateway -n "not $seen $commands" -a read -d 'read a property now'
complete -c microbit-gateway -n "not $seen $commands" -a write -d 'set a property'
complete -c microbit-gateway -n "not $seen $commands" -a watch -d 'show readings as they come'
complete -c microbit-gateway -n "not $seen $commands" -a pair -d 'pair with a peripheral'
complete -c microbit-gateway -n "not $seen $commands" -a unpair -d 'remove the pairing of a peripheral'
complete -c microbit-gateway -n "not $seen $commands" -a identify -d 'show the name of a micro:bit on its LEDs'
complete -c microbit-gateway -n "not $seen $commands" -a bonds -d 'list the paired devices'
complete -c microbit-gateway -n "not $seen $commands" -a profiles -d 'list the profiles, or print one as JSON'
complete -c microbit-gateway -n "not $seen $commands" -a profile -d 'check a file of profiles'
complete -c microbit-gateway -n "not $seen $commands" -a forget -d 'clear what the broker retains'
complete -c microbit-gateway -n "not $seen $commands" -a version -d 'print the version'

complete -c microbit-gateway -n "$seen profiles" -a '(microbit-gateway profiles 2>/dev/null | string replace -r ":.*" "")'
complete -c microbit-gateway -n "$seen profile; and not $seen check" -a check -d 'check a file of profiles'
complete -c microbit-gateway -n "$seen profile; and $seen check" -F

complete -c microbit-gateway -n "$seen run init doctor check scan profiles forget $running $device" -l config -rF -d 'the configuration file'
complete -c microbit-gateway -l log-level -xa 'debug info notice warning error' -d 'how much is logged'
complete -c microbit-gateway -n "$seen run" -l log-format -xa 'text json' -d 'form of the log'
complete -c microbit-gateway -n "$seen init scan inspect read write" -l timeout -x -d 'seconds to scan, or to wait for the device'
complete -c microbit-gateway -n "$seen doctor scan devices inspect read write watch" -l json -d 'print JSON'
complete -c microbit-gateway -n "$seen scan" -l live -d 'a table that is kept up to date'
complete -c microbit-gateway -n "$seen watch" -l csv -d 'print a spreadsheet'
complete -c microbit-gateway -n "$seen $running $device" -l gateway -x -d 'which running gateway'
complete -c microbit-gateway -n "$seen pair" -l passkey -x -d 'the number that the micro:bit shows'
complete -c microbit-gateway -n "$seen init" -l device -x -d 'use this micro:bit: ADDRESS=NAME,AREA'
complete -c microbit-gateway -n "$seen init" -l all -d 'use every micro:bit in range'
complete -c microbit-gateway -n "$seen init" -l broker -xa '(__fish_print_hostnames)' -d 'host of the broker'
complete -c microbit-gateway -n "$seen init" -l port -x -d 'port of the broker'
complete -c microbit-gateway -n "$seen init" -l tls -d 'use TLS'
complete -c microbit-gateway -n "$seen init" -l ca-file -rF -d 'certificate authority'
complete -c microbit-gateway -n "$seen init" -l username -x -d 'login'
complete -c microbit-gateway -n "$seen init" -l password-file -rF -d 'file with the password'
complete -c microbit-gateway -n "$seen init" -l no-test -d 'do not try the broker'
complete -c microbit-gateway -n "$seen init" -l yes -d 'ask nothing'
complete -c microbit-gateway -n "$seen forget" -l yes -d 'do not ask'
complete -c microbit-gateway -s h -l help -d 'print help'
complete -c microbit-gateway -n "not $seen $commands" -l version -d 'print the version'
