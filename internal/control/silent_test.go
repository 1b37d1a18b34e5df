package control

import (
	"time"

	"orrery/internal/plan"
)

// silent is a Watcher that ignores all events.
type silent struct{}

func (silent) Steps(*plan.Plan, func(*plan.Step) time.Duration) StepWatcher { return silent{} }
func (silent) Event(Event)                                                  {}
func (silent) Begin(*plan.Step)                                             {}
func (silent) Detail(*plan.Step, string)                                    {}
func (silent) Waits(*plan.Step, string)                                     {}
func (silent) End(*plan.Step, error)                                        {}
func (silent) Close()                                                       {}

func (silent) Bytes(string) ByteWatcher { return silent{} }
func (silent) Add(int64)                {}
