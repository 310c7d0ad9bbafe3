# fish completion for microbit-simulator

complete -c microbit-simulator -f
complete -c microbit-simulator -l devices -x -d 'number of micro:bits'
complete -c microbit-simulator -l adapters -x -d 'number of adapters'
complete -c microbit-simulator -l decoys -x -d 'number of other peripherals'
complete -c microbit-simulator -l peripheral -rF -d 'another peripheral, described in JSON'
complete -c microbit-simulator -l profile -rF -d 'another peripheral, of a profile'
complete -c microbit-simulator -l profiles-directory -xa '(__fish_complete_directories)' -d 'folder of profiles'
complete -c microbit-simulator -l generate -x -d 'generate the values of a property: PROPERTY=GENERATOR'
complete -c microbit-simulator -l services -x -d 'services of the micro:bits' \
  -a '(__fish_append , temperature buttons accelerometer led magnetometer pins uart events)'
complete -c microbit-simulator -l bus -x -d 'address of the bus'
complete -c microbit-simulator -l system-bus -d "allow this machine's real system bus"
complete -c microbit-simulator -l name-prefix -x -d "beginning of the micro:bits' names"
complete -c microbit-simulator -l name -x -d 'full name of a micro:bit: I=NAME'
complete -c microbit-simulator -l address -x -d 'address of a micro:bit: I=ADDRESS'
complete -c microbit-simulator -l period -x -d 'initial period in ms'
complete -c microbit-simulator -l minimum-period -x -d 'shortest period that is accepted, in ms'
complete -c microbit-simulator -l no-period -d 'omit the period characteristic'
complete -c microbit-simulator -l pairing -xa 'just_works passkey' -d 'require pairing'
complete -c microbit-simulator -l seed -x -d 'seed of temperatures and signal strengths'
complete -c microbit-simulator -l control -rF -d 'unix socket for commands'
complete -c microbit-simulator -l trace -rF -d 'file with the time of each notification'
complete -c microbit-simulator -l connect-ms -x -d 'duration of Connect in ms'
complete -c microbit-simulator -l disconnect-ms -x -d 'duration of Disconnect in ms'
complete -c microbit-simulator -l advertise-ms -x -d 'until all advertisers are found, in ms'
complete -c microbit-simulator -l scan-ms -x -d 'between two reports of an advertiser, in ms'
complete -c microbit-simulator -l temporary-ms -x -d 'until a device that was never connected is removed, in ms'
complete -c microbit-simulator -l supervision-ms -x -d 'until a link without radio is lost, in ms'
complete -c microbit-simulator -l timeout-ms -x -d 'until Connect to an absent device fails, in ms'
complete -c microbit-simulator -l attribute-ms -x -d 'duration of an ATT request in ms'
complete -c microbit-simulator -l help -d 'print help'
complete -c microbit-simulator -l version -d 'print the version'
