package remote

import "time"

// LetGo shortens how long a host may take to end an experiment, until it is given back.
func LetGo(d time.Duration) (back func()) {
	old := endTimeout
	endTimeout = d
	return func() { endTimeout = old }
}
