"""The 79 statements of what five guides for training expect, with the tests that show each, for docs/acceptance.md.

Tests of this folder belong to a statement by their names (``test_1_0_4_...``, ``test_1_0_14_and_15_...``); tests elsewhere are
named here. A statement without a test is open, whatever the code does.
"""

from dataclasses import dataclass

REAL, SIMULATED, RULES, CLIENT = "real", "simulated", "rules", "client"
GROUNDS = {
    REAL: "the fleet's own services, APIs and rows, whatever the member is; members are simulated",
    SIMULATED: "true of the simulated member only: its operator, scheduler, kubelet or device plugin does it",
    RULES: "read from manifests and decided without a member",
    CLIENT: "unmodified programs of other authors against the fleet; members are simulated",
}


@dataclass(frozen=True, slots=True)
class Statement:
    number: str
    sentence: str
    ground: str = REAL
    by: str = "services"
    """By what client it is shown."""
    tests: tuple[str, ...] = ()
    """``file::name`` of tests outside this folder."""
    lacks: str = ""
    """What of the statement is not shown."""


NOTICES, KILLS = "tests/jobs/services/follow/test_notices.py", "tests/supervisor/test_kills.py"
GROWTH, RECLAIMS = "tests/jobs/services/scheduling/decisions/test_spare_growth.py", "tests/flows/test_reclaims.py"
STORED = "tests/jobs/services/inspect/test_stored_facts.py"
DLROVER, RUNTIME = "tests/clients/test_dlrover.py", "tests/jobs/services/inspect/test_runtime.py"
SHRINKS_AND_GROWS = f"{DLROVER}::test_the_guides_manifest_trains_to_the_end_over_a_lost_process_and_a_lost_worker"
HANGS = "tests/jobs/services/follow/test_hangs.py"
STACKS = "tests/jobs/services/inspect/test_stacks.py"
MAX_WAIT = "tests/jobs/services/follow/timeouts/test_max_wait.py"
SCALERS = "tests/jobs/services/dispatch/copies/test_scalers.py"
DIAGNOSIS = "tests/jobs/services/follow/test_diagnosing.py"
KUBEAI = "tests/clients/test_kubeai.py::test_it_hears_the_notice_saves_and_leaves_and_only_where_it_is_annotated"
PODS = "tests/jobs/services/dispatch/test_pod_groups.py"

FLEET = (
    Statement(
        "1.0.1", "Clusters are listed with version, scheduler and whether reservation is enabled", by="kubectl, convoy"
    ),
    Statement("1.0.2", "A second quota tree, or one outside kube-system, is refused with a reason", by="kubectl"),
    Statement("1.0.3", "A root whose min is not its max is refused", by="kubectl"),
    Statement("1.0.4", "Queues are listed by name and age, one for each node of the tree", by="kubectl"),
    Statement(
        "1.0.5",
        "A job queues in the leaf of its namespace; a namespace in none, or in two, has a stated outcome",
        by="kubectl",
    ),
    Statement("1.0.6", "With max-jobs 1 one job runs, and its end, deletion or suspension releases the next"),
    Statement("1.0.7", "Above max a job stays queued, with queue, resource, used, requested and max"),
    Statement("1.0.8", "A queue takes back up to its min from what borrows it, the youngest first, never below a min"),
    Statement("1.0.9", "Master and workers land in one member or none; both groups of the policy are accepted"),
    Statement("1.0.10", "A job of a suspended policy takes its place in the queue and waits for its release"),
    Statement(
        "1.0.11",
        "Without reservations the sum of free is compared, with them each node",
        lacks="one pod of 8 GPUs is never sent to two nodes of 4, with or without reservations",
    ),
    Statement("1.0.12", "A failed job is purged after tolerationSeconds, not before, and goes to another member"),
    Statement(
        "1.0.13",
        "What pods refer to is in the member before them and leaves with the last that refers to it",
    ),
    Statement(
        "1.0.14", "A PyTorchJob is shown with NAME, STATE and AGE, Created before its release", by="kubectl, convoy"
    ),
    Statement("1.0.15", "Describe shows ScheduleBindingSucceed with cluster and roles", by="kubectl"),
    Statement("1.0.16", "The copies in the members are shown with cluster, state and adoption", by="kubectl amc"),
    Statement("1.0.17", "Pods of all members are listed; one that is away is a line of warning", by="kubectl amc"),
    Statement("1.0.18", "Status and logs of the member show on the fleet's object", by="REST"),
    Statement("1.0.19", "A member that cannot start all pods in time gives the job back, and the next is tried"),
    Statement("1.0.20", "A queue goes by priority, then time; positions are shown", by="kubectl, convoy"),
)
ELASTIC = (
    Statement(
        "1.1.1",
        "Best-effort pods are counted as reclaimable, in a column of their own",
        by="convoy",
        lacks="a queue's guaranteed use counts them too",
    ),
    Statement(
        "1.1.2",
        "Only annotated pods get a notice",
        tests=(f"{KILLS}::test_it_tells_nobody_without_the_annotation", KUBEAI),
    ),
    Statement("1.1.3", "The supervisor is listed among the add-ons", by="convoy"),
    Statement("1.1.4", "The SDK listens for the notice", CLIENT, "kubeai", (KUBEAI,)),
    Statement(
        "1.1.5",
        "On a notice the script saves and leaves; all ranks agree on the step",
        CLIENT,
        "kubeai, convoy_runtime",
        (KUBEAI, "tests/clients/test_agree.py::test_four_ranks_leave_after_the_same_step_twenty_times_of_twenty"),
    ),
    Statement(
        "1.1.6",
        "Between notice and deletion a checkpoint is saved, and each time is recorded",
        tests=(
            f"{KILLS}::test_it_gives_notice_and_deletes_in_order",
            f"{NOTICES}::test_it_keeps_a_row_for_each_pod_and_says_so_once",
        ),
    ),
    Statement(
        "1.1.7",
        "With enough survivors the job runs on with fewer workers",
        SIMULATED,
        "the supervisor",
        (f"{RECLAIMS}::test_it_runs_on_with_fewer_workers_and_grows_back_without_an_attempt",),
    ),
    Statement(
        "1.1.8",
        "Below its min all workers save, and the job gives back its quota",
        SIMULATED,
        "the supervisor",
        (f"{RECLAIMS}::test_below_its_min_all_save_and_it_goes_on_elsewhere_where_they_stopped",),
    ),
    Statement(
        "1.1.9",
        "It resumes by itself, where it saved, when there is room",
        SIMULATED,
        "the supervisor",
        (f"{RECLAIMS}::test_below_its_min_all_save_and_it_goes_on_elsewhere_where_they_stopped",),
    ),
    Statement(
        "1.1.10",
        "Longer than its max-wait-time without room, it ends",
        tests=(f"{MAX_WAIT}::test_it_ends_a_job_that_found_no_room_in_time_and_says_why_it_had_none",),
    ),
    Statement("1.1.11", "`submit etjob` prints the created objects and how to look at the job", by="convoy"),
    Statement("1.1.12", "Variables of the command are expanded in the pod, not in the shell", by="convoy"),
    Statement("1.1.13", "The launcher starts only after all workers are ready", SIMULATED),
    Statement(
        "1.1.14",
        "`scalein` and `scaleout` keep the bounds",
        tests=(
            "tests/flows/test_resizing_kinds.py::test_a_training_job_is_resized_by_one_scaler_each_time",
            f"{SCALERS}::test_outside_its_bounds_it_is_refused_with_the_numbers",
        ),
    ),
    Statement(
        "1.1.15",
        "An elastic job grows into free room, never above its max or into another queue's min",
        tests=(
            f"{GROWTH}::test_it_grows_with_what_no_other_queue_is_promised",
            f"{GROWTH}::test_it_never_grows_above_its_max",
        ),
    ),
    Statement("1.1.16", "The backoff limit counts failures of the whole job", SIMULATED),
    Statement(
        "1.1.17",
        "Signals of the spot market; faster images",
        RULES,
        tests=(
            "tests/supervisor/core/test_signals.py::test_it_knows_the_taints_of_providers",
            "tests/supervisor/core/test_signals.py::test_it_knows_the_condition_of_ack_on_a_node",
            "tests/jobs/api/inspect/test_spot.py::test_it_shows_pools_and_what_each_reclaim_cost",
        ),
        lacks="images are fetched no faster; prices and forecasts of the market are not read",
    ),
)
VOLCANO = (
    Statement("1.2.1", "A TFJob is read with three roles and their totals", by="convoy"),
    Statement(
        "1.2.2",
        "Of two jobs that fit once, one runs whole and the other holds nothing; gang off is warned about",
        by="kubectl",
    ),
    Statement("1.2.3", "schedulerName volcano at any level makes Volcano's pods and PodGroup"),
    Statement("1.2.4", "Pods are not created until the PodGroup is Inqueue", SIMULATED),
    Statement("1.2.5", "Affinity of parameter servers and workers", SIMULATED),
    Statement("1.2.6", "A leaf of the fleet is Volcano's queue of that name; a closed queue refuses", by="kubectl"),
    Statement("1.2.7", "Fair shares between users; packing leaves fewer nodes partly used than spreading"),
    Statement("1.2.8", "Roles are never split over clusters, so that TF_CONFIG stays valid", by="kubectl"),
    Statement(
        "1.2.9", "Success is the chief's, worker 0's or all workers'; failures follow the restart policy", SIMULATED
    ),
    Statement("1.2.10", "sidecar.istio.io/inject and environment variables stay on the pods", by="kubectl"),
)
TOPOLOGY = (
    Statement(
        "1.3.1",
        "A label makes a node hand out its GPUs by their links",
        SIMULATED,
        "convoy",
        ("tests/fleet/api/test_node_labels.py::test_a_label_is_set_changed_only_by_overwriting_and_removed",),
    ),
    Statement("1.3.2", "Such a node tells the links and bandwidths of its GPUs", SIMULATED),
    Statement("1.3.3", "An MPI job's workers are on one node, on its best GPUs; its launcher has none", by="convoy"),
    Statement("1.3.4", "Of six free GPUs the fast quad is chosen, not the first four"),
    Statement("1.3.5", "A gang that lacks GPUs waits whole and holds none", by="kubectl"),
    Statement("1.3.6", "What no node holds takes the nearest nodes; required topology is kept"),
    Statement("1.3.7", "`top node -d` prints links, bandwidths and which pod has which GPU", by="convoy"),
    Statement("1.3.8", "`simulate` foretells the speed within a tenth", by="convoy"),
    Statement(
        "1.3.9",
        "The chosen GPUs reach the container by the annotations that device plugins read",
        SIMULATED,
        tests=("tests/jobs/kinds/test_ranks.py::test_device_plugins_find_the_gpus_where_a_template_can_say_them",),
    ),
    Statement("1.3.10", "Logs follow the launcher by default", by="convoy"),
    Statement("1.3.11", "Topology is offered to every kind, not to MPI jobs alone", SIMULATED),
)
DLROVER_STATEMENTS = (
    Statement("1.4.1", "An ElasticJob is accepted; a missing master gets its default", by="kubectl"),
    Statement("1.4.2", "Pods are named after the job; a replaced rank keeps its rank under a new id", SIMULATED),
    Statement(
        "1.4.3",
        "The network check finds and replaces a faulty node",
        tests=(
            "tests/flows/test_node_check.py::test_a_gang_leaves_the_node_that_fails_the_check_and_trains_on_others",
        ),
        lacks="by Convoy's check before a gang starts, and the whole gang moves; of DLRover's own only what it logs is read",
    ),
    Statement(
        "1.4.4",
        "A node that failed the check is excluded and says why",
        tests=(f"{STORED}::test_a_node_that_failed_the_check_is_excluded_for_the_job_alone",),
        lacks="by recorded lines of DLRover; a worker that its master replaces within an attempt may land there",
    ),
    Statement(
        "1.4.5",
        "A straggler is excluded",
        tests=(f"{STORED}::test_a_node_that_failed_the_check_is_excluded_for_the_job_alone",),
        lacks="for the next attempts of its job, by recorded lines of DLRover",
    ),
    Statement("1.4.6", "Checks of switch boxes", lacks="in no public DLRover"),
    Statement(
        "1.4.7",
        "dlrover-run takes torchrun's flags",
        CLIENT,
        "DLRover",
        (SHRINKS_AND_GROWS,),
    ),
    Statement(
        "1.4.8",
        "A range of nodes: starts from min, grows and shrinks",
        CLIENT,
        "DLRover",
        (SHRINKS_AND_GROWS,),
        "it is not shown that it starts from min",
    ),
    Statement(
        "1.4.9",
        "The control plane sees each rendezvous",
        tests=(
            f"{RUNTIME}::test_it_shows_the_ranks_and_the_checkpoints_of_all_pods",
            f"{STORED}::test_it_is_stored_once_and_shown_when_the_pods_are_gone",
        ),
    ),
    Statement(
        "1.4.10",
        "Restarts of processes, then of pods, then the job's failure, with its reason",
        SIMULATED,
        tests=(
            "tests/flows/test_elasticjobs.py::test_a_job_whose_script_always_fails_ends_after_three_pods_and_says_that_its_master_did",
        ),
    ),
    Statement(
        "1.4.11",
        "Flash checkpoints",
        CLIENT,
        "DLRover",
        (SHRINKS_AND_GROWS, f"{DLROVER}::test_a_suspended_job_leaves_no_pod_and_goes_on_from_its_checkpoint"),
        "one framework",
    ),
    Statement(
        "1.4.12",
        "Checkpoints are recorded with step and tier",
        tests=(
            f"{RUNTIME}::test_it_shows_the_ranks_and_the_checkpoints_of_all_pods",
            "tests/jobs/runtime/test_facts.py"
            "::test_a_checkpoint_has_its_shards_how_long_they_took_and_whether_it_is_whole",
            f"{STORED}::test_the_step_of_a_checkpoint_in_memory_is_corrected_by_the_next_look",
        ),
    ),
    Statement(
        "1.4.13",
        "Ranks of nodes under one access switch are consecutive, by the table of switches",
        tests=(
            "tests/jobs/services/dispatch/copies/test_topology_places.py"
            "::test_the_table_may_stand_where_the_guide_of_dlrover_has_it_and_that_of_the_clusters_goes_first",
        ),
    ),
    Statement(
        "1.4.14",
        "A hanging kernel is found",
        tests=(f"{HANGS}::test_1_4_16_silence_of_120_seconds_is_a_hang_once_and_is_over_with_the_next_step",),
        lacks="by the steps that the training reports; kernels are not watched",
    ),
    Statement(
        "1.4.15",
        "Stacks of all ranks are merged",
        tests=(f"{STACKS}::test_1_4_15_the_one_of_four_real_ranks_that_sleeps_is_the_suspect",),
        lacks="stacks of C and C++ only where py-spy prints them",
    ),
    Statement(
        "1.4.16",
        "A policy for hanging jobs",
        tests=(
            f"{HANGS}::test_1_4_16_silence_of_120_seconds_is_a_hang_once_and_is_over_with_the_next_step",
            f"{HANGS}::test_1_4_16_the_webhook_is_called_with_a_signature_until_it_takes_the_call",
            f"{HANGS}::test_1_4_16_it_restarts_its_pods_at_their_place_if_the_job_wants_that",
            f"{HANGS}::test_1_4_16_it_leaves_for_another_place_if_the_job_wants_that",
        ),
    ),
    Statement(
        "1.4.17",
        "A gang of Koordinator, by annotations or by a PodGroup of scheduling.sigs.k8s.io",
        SIMULATED,
        tests=(f"{PODS}::test_it_is_in_the_member_with_its_job_and_leaves_with_the_last",),
    ),
    Statement("1.4.18", "A suspended ElasticJob has no worker pods", SIMULATED, by="kubectl"),
    Statement("1.4.19", "Sizes and resources follow use; out of memory doubles it", lacks="not built"),
    Statement(
        "1.4.20",
        "A training job starts after the Spark application that prepares its data",
        tests=(
            "tests/jobs/services/test_dependencies.py::test_it_is_held_up_by_a_failure_only_where_it_asks_for_success",
        ),
        lacks="by dependency between jobs; the files are not looked at",
    ),
    Statement(
        "1.4.21",
        "The failing rank's error reaches the job",
        tests=(f"{DIAGNOSIS}::test_the_message_of_the_failing_rank_is_the_reason_of_the_job",),
    ),
)
ALL = (*FLEET, *ELASTIC, *VOLCANO, *TOPOLOGY, *DLROVER_STATEMENTS)
