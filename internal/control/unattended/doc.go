// Package unattended has what a host does for a site on its own.
//
// On its own means without the control host, the other hosts and the site directory. The control host
// makes a plan with all hosts in view, and has each host store an apply.UnattendedPlan for each
// trigger. The plan says when the host carries it out. At that time the host runs the hidden verb
// host-run, either from a timer or as a process that watches. After a reboot, orrery resume does it.
// Run reads the plan and leaves the rest to the trigger.
//
// Each trigger is one file here. It has what the control host plans for the trigger, and what the
// host does then. The trigger is in the list Triggers, and no other code needs to know it.
//
// A plan says
//
//   - when it is carried out: at a time, at intervals, when the process that watches says so, or,
//     with none of these, after a reboot;
//   - what is done: complete steps, so that neither the site directory nor another host is needed,
//     or the volumes that are mirrored;
//   - on which conditions: the health checks that must hold, what must be on record until then, and
//     the hooks that are notified.
//
// An empty plan ends the former one. If the process that waits for a plan was killed, Lapses finds
// the plan. The next command that changes a site on the host, or that reaches the host from another
// one, starts the process again. A plan that is overdue is then carried out at once.
//
// The triggers:
//
//   - boot is planned after each run on a site with several hosts. The host starts the nodes that it
//     had, if they have not changed since (decision 51).
//
//   - trial is planned when a trial begins, and after each run during it. The host watches, and goes
//     back when the time is over (decision 46). The only host of a site decides alone: it goes back
//     as soon as checks fail, confirms the release if they hold, and reads the site directory for
//     secrets.
//
//   - mirror is planned by up, for volumes with an interval. The host mirrors the volumes of its own
//     nodes. Each volume is a part with its own timer.
//
//   - expiry is planned with the record of a twin. The host destroys its part of the twin.
//
//   - routine is planned by up for the host on which it runs, and ends on the others: backups,
//     snapshots and a watch of the whole site. Each is a part with its own timer, which starts more
//     often than the part is due. The host uses the site as it was declared then, and connects to the
//     other hosts like a control host.
//
// A new trigger needs a file here, with what the control host plans and what the host does, and an
// entry in Triggers; new_trigger_test.go adds one. Former versions had boot.json, wayback.json and
// mirroring.json, which apply/formerplans.go reads until they are replaced.
package unattended
