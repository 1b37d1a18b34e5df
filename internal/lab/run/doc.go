// Package run runs the rounds of an experiment.
//
// It runs every test in every setting, one trial at a time, in an order that does not let drift of
// the host favour a setting.
//
// An experiment becomes a site directory, which is planned and applied like any other:
//
//	experiment ──► setting: a site directory ──► plan, apply ──► place: near, far, bare
//	    │                                                           │
//	    └──► run: rounds of test.Run(near, far) ◄───────────────────┘
//	             │            └── probe, facts ──► suspect
//	             ▼
//	          bundle ──► report (stats)
package run
