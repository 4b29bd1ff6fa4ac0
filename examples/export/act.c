/* Act with an exported policy: an observation in each line of the input, an action in each line of the output.

       edp export runs/mine policy.c
       cc -std=c99 -O2 act.c policy.c -lm -o act
       echo "20.5 3.0 31.0 0 0 1 0.25" | ./act

   An argument is the seed of the random numbers. With -march=native, it is several times as fast.

   The loop keeps to `control` of the contract. It has one thread, so it notices a late action when that is there. Where
   the deadline is hard, act in a task of lower priority, and fall back in the one that drives the process. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define POLICY_DECLARATIONS
#include "policy.c"

static int fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return EXIT_FAILURE;
}

int main(int count, char **words)
{
    float observation[POLICY_OBSERVATIONS], action[POLICY_ACTIONS], last[POLICY_ACTIONS];
    policy_random random;
    int i, steps, misses = 0;
    policy_seed(&random, count > 1 ? (uint32_t)strtoul(words[1], NULL, 10) : 0);
    for (steps = 0;; steps++) {
        const clock_t start = clock();
        int outside, hold;
        for (i = 0; i < POLICY_OBSERVATIONS; i++)
            if (scanf("%f", &observation[i]) != 1) {
                if (misses)
                    fprintf(stderr, "%d of %d actions were late\n", misses, steps);
                return i == 0 && feof(stdin) ? EXIT_SUCCESS : EXIT_FAILURE;
            }
        outside = POLICY_OUTSIDE == POLICY_IGNORE ? 0 : policy_outside(observation);
        hold = outside && POLICY_OUTSIDE == POLICY_HOLD;
        if (outside)
            fprintf(stderr, "outside of the training data: %d of the observation's numbers\n", outside);
        if (outside && POLICY_OUTSIDE == POLICY_REFUSE)
            return EXIT_FAILURE;
        if (hold && !steps)
            return fail("there is no earlier action to hold");
        if (!hold && policy_act_random(observation, &random, action))
            return fail("the observation has NaN or Inf: hold the last action, or fall back");
        if (!hold && policy_deadline_ms > 0 && 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC > (double)policy_deadline_ms) {
            misses++;
            policy_fall_back(steps ? last : action, action);
        }
        if (steps)
            policy_limit(last, action);
        for (i = 0; i < POLICY_ACTIONS; i++) {
            last[i] = action[i];
            printf("%s%s=%.6g", i ? " " : "", policy_action_names[i], (double)action[i]);
        }
        printf("\n");
    }
}
