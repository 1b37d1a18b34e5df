// Package unattended has what a host does for a site on its own: without the control host, the other hosts and
// the site directory.
//
// The control host plans it with all hosts in view and has each host store an apply.UnattendedPlan for each
// trigger. The plan says when it is carried out, and the host starts the hidden verb host-run then: by a
// timer, or as a process that watches; after a reboot, orrery resume does. Run reads the plan and leaves the
// rest to the trigger.
//
// A trigger is one file here: what the control host plans for it, and what the host does then. It is in the
// list Triggers, and nothing else has to know it.
//
// A plan says
//
//   - when: at a time, at intervals, when the process that watches says so, or, with none of these, after a reboot;
//   - what: whole steps, so that neither the site directory nor another host is needed, or the volumes that are
//     mirrored;
//   - on which conditions: health checks that must hold, what is on record meanwhile, and the hooks that are notified.
//
// An empty plan ends the former one. What is to wait for a plan and was killed is found by Lapses:
// the next command that changes a site on the host, or that reaches the host from another one,
// starts it again, and what is overdue is done at once.
//
// The triggers:
//
//   - boot is planned after each run on a site with several hosts. The host starts what it had, as far as its nodes are
//     as they were (decision 51).
//   - trial is planned when a trial begins, and after each run during it. The host watches, and goes back when the time
//     is over (decision 46). The only host of a site decides alone: it goes back as soon as checks fail, confirms the
//     release if they hold, and reads the site directory for secrets.
//   - mirror is planned by up, for volumes with an interval. The host mirrors the volumes of its own nodes; each volume
//     is a part with its own timer.
//   - expiry is planned with the record of a twin. The host ends what it has of the twin.
//
// A new trigger is a file here, with what the control host plans and what the host does, and an
// entry in Triggers; new_trigger_test.go adds one. Former versions had boot.json, wayback.json and
// mirroring.json, which apply/formerplans.go reads until they are replaced.
package unattended
