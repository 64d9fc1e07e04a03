# attack: outstay the time limit by ignoring all that can be ignored
# ends: timedOut
trap '' TERM HUP INT QUIT USR1 USR2 PIPE ALRM
while :; do sleep 1; done
