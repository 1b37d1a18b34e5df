package remote

import "time"

// LetGo shortens endTimeout until back is called.
func LetGo(d time.Duration) (back func()) {
	old := endTimeout
	endTimeout = d
	return func() { endTimeout = old }
}
