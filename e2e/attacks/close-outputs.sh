# attack: look ended by closing everything, and go on
# ends: timedOut
trap '' TERM
exec <&- >&- 2>&-
while :; do sleep 1; done
