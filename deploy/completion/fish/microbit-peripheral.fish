# fish completion for microbit-peripheral

complete -c microbit-peripheral -f
complete -c microbit-peripheral -l adapter -xa '(path basename /sys/class/bluetooth/*)' -d 'Bluetooth adapter'
complete -c microbit-peripheral -l profile -rF -d 'name of a profile, or file with one'
complete -c microbit-peripheral -l profiles-directory -xa '(__fish_complete_directories)' -d 'folder of profiles'
complete -c microbit-peripheral -l name -x -d 'advertised name'
complete -c microbit-peripheral -l generate -x -d 'generate the values of a property: PROPERTY=GENERATOR'
complete -c microbit-peripheral -l help -d 'print help'
complete -c microbit-peripheral -l version -d 'print the version'
